// Debian's Chromium, without what it would ask of others by itself.
import { chromium } from "playwright-core";

export const launchBrowser = () =>
  chromium.launch({
    executablePath: process.env.CHROMIUM,
    args: [
      "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
      "--disable-component-update", "--disable-sync",
    ],
  });
