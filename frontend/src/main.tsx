/** Start: sign in with the token of the link, then show the app. */
import { createRoot } from "react-dom/client";
import { App } from "./app";
import { signIn } from "./api";
import { setLanguage } from "./messages";
import { findSecret, keepSecret } from "./tab-secret";

async function start(): Promise<void> {
  setLanguage(navigator.language);
  const token = /^#sign-in=(.+)$/.exec(window.location.hash)?.[1];
  if (token) {
    window.history.replaceState(null, "", window.location.pathname);
    await signIn(token).then((found) => keepSecret(found.csrf), () => undefined);
  }
  await findSecret();
  const place = document.getElementById("app");
  if (place) createRoot(place).render(<App />);
}

void start();
