// The dashboard: finds out who looks, shows the page of the address within the frame that all pages have.
import "./style.css";
import { here, to, watchMoves } from "./address";
import { silentSince } from "./api";
import type { MakePage, Page } from "./page";
import { deliveryPage } from "./pages/delivery";
import { jobPage } from "./pages/job";
import { jobsPage } from "./pages/jobs";
import { overviewPage } from "./pages/overview";
import { webhooksPage } from "./pages/webhooks";
import { workersPage } from "./pages/workers";
import { findOut, loginAddress, logOut, standing } from "./session";
import { Talk } from "./talk";
import { nextTheme, theme } from "./theme";
import { Heading, Problem } from "./parts";
import { Fragment, h, redraw, show, type Content } from "./view";

const routes: [RegExp, MakePage][] = [
  [/^\/$/, overviewPage],
  [/^\/jobs$/, jobsPage],
  [/^\/jobs\/([^/]+)$/, jobPage],
  [/^\/workers$/, workersPage],
  [/^\/webhooks$/, webhooksPage],
  [/^\/webhooks\/deliveries\/([^/]+)$/, deliveryPage],
];
const sections = [
  ["/", "Overview"],
  ["/jobs", "Jobs"],
  ["/workers", "Workers"],
  ["/webhooks", "Webhooks"],
] as const;

const nowhere: MakePage = () => ({
  title: "Nothing here",
  view: () => (
    <Fragment>
      <Heading title="Nothing here" />
      <p>The dashboard has no page at this address. <a href={to("/")}>To the overview</a></p>
    </Fragment>
  ),
  stop: () => {},
});

// An address may have anything in it; what is no text is nobody's id.
function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

let page: Page | undefined;

function open(): void {
  if (standing.is !== "in" && standing.is !== "free") return;
  page?.stop();
  const place = here();
  const route = routes.find(([pattern]) => pattern.test(place.path));
  const parts = route?.[0].exec(place.path)?.slice(1).map(decoded) ?? [];
  page = (route?.[1] ?? nowhere)(place, ...parts);
  document.title = `${page.title} · comfyd`;
  redraw();
}

// To another page: who hears the page instead of seeing it is told so. Another filter of the same page leaves all where it is.
let lastPath = here().path;
function moved(): void {
  const isOther = here().path !== lastPath;
  lastPath = here().path;
  open();
  if (!isOther) return;
  scrollTo(0, 0);
  requestAnimationFrame(() => document.querySelector("h1")?.focus());
}

function Frame({ children }: { children?: Content }): Content {
  const { path } = here();
  return (
    <Fragment>
      <a class="skip" href="#main" onclick={(event) => {
        event.preventDefault();
        document.querySelector("h1")?.focus();
      }}>To the content</a>
      <header class="top">
        <a class="brand" href={to("/")}>comfyd</a>
        <nav aria-label="Sections">
          {sections.map(([section, name]) => {
            const isHere = section === "/" ? path === "/" : path.startsWith(section);
            return <a key={section} href={to(section)} aria-current={isHere ? "page" : undefined}>{name}</a>;
          })}
        </nav>
        <div class="who">
          {standing.is === "in" && <span title={`tenant ${standing.session.tenant}`}>{standing.session.name}</span>}
          {standing.is === "in" && <button class="quiet" onclick={() => void logOut()}>Sign out</button>}
          <a class="quiet" href="/docs">API</a>
          <button class="quiet" title="Change the theme" aria-label={`Theme: ${theme()}`} onclick={nextTheme}>◐ {theme()}</button>
        </div>
      </header>
      {silentSince !== undefined && (
        <p class="bar" role="status">No connection since {new Date(silentSince).toLocaleTimeString("en-GB")}. What you see is from before.</p>
      )}
      <main id="main">{children}</main>
      <Talk />
    </Fragment>
  );
}

function view(): Content {
  switch (standing.is) {
    case "unknown":
      return null;
    case "shut":
      return <Frame><Heading title="No way in" /><Problem failure={standing.failure} /></Frame>;
    case "out":
      return (
        <Frame>
          <p class="bar" role="alert">Your session has ended. <a href={loginAddress()}>Sign in again</a></p>
          {page?.view()}
        </Frame>
      );
    default:
      return <Frame>{page?.view()}</Frame>;
  }
}

watchMoves(moved);
show(document.getElementById("app")!, view);
setInterval(redraw, 1000); // "3 s ago" becomes "4 s ago"
await findOut();
if (standing.is === "out") location.replace(loginAddress());
else open();
