// Numbers and times for people. What is not known is "–", never 0.
import { now } from "./api";

export const kUnknown = "–";

const plain = new Intl.NumberFormat("en");
export const count = (value: number | undefined): string => (value === undefined ? kUnknown : plain.format(value));

export function duration(seconds: number | null | undefined): string {
  if (seconds === null || seconds === undefined) return kUnknown;
  if (seconds < 0.0005) return "0 s";
  if (seconds < 0.0995) return `${Math.max(1, Math.round(seconds * 1000))} ms`;
  if (seconds < 9.95) return `${Number(seconds.toFixed(1))} s`;
  if (seconds < 99.5) return `${Math.round(seconds)} s`;
  const minutes = seconds / 60;
  if (minutes < 99.5) return `${Math.round(minutes)} min`;
  const hours = minutes / 60;
  return hours < 48 ? `${Math.round(hours)} h` : `${Math.round(hours / 24)} days`;
}

export function between(from: string | null, until: string | null): number | undefined {
  return from && until ? Math.max(0, (Date.parse(until) - Date.parse(from)) / 1000) : undefined;
}

export const since = (time: string): number => Math.max(0, (now() - Date.parse(time)) / 1000);

export function ago(time: string): string {
  const seconds = (now() - Date.parse(time)) / 1000;
  if (seconds < -1) return `in ${duration(Math.round(-seconds))}`;
  return seconds < 3 ? "just now" : `${duration(Math.round(seconds))} ago`;
}

const full = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "medium" });
export const exact = (time: string): string => full.format(new Date(time));

export function bytes(size: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let value = size;
  let unit = 0;
  for (; value >= 1024 && unit < units.length - 1; ++unit) value /= 1024;
  return `${value >= 100 || unit === 0 ? Math.round(value) : value.toFixed(1)} ${units[unit]}`;
}

export const plural = (number: number, word: string): string => `${count(number)} ${word}${number === 1 ? "" : "s"}`;

// Enough of an id to know it again: ids of one moment begin alike.
export const short = (id: string): string => `…${id.slice(-8)}`;
