/** Start: sign in with the token of the link, then show the app. */
import { createRoot } from "react-dom/client";
import { App } from "./app";
import { signIn } from "./api";
import { setLanguage } from "./messages";

async function start(): Promise<void> {
  setLanguage(navigator.language);
  const token = /^#sign-in=(.+)$/.exec(window.location.hash)?.[1];
  if (token) {
    window.history.replaceState(null, "", window.location.pathname);
    await signIn(token).catch(() => undefined);
  }
  const place = document.getElementById("app");
  if (place) createRoot(place).render(<App />);
}

void start();
