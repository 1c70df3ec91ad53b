/** The second half of a session. A cookie of 127.0.0.1 goes to every port of the machine; storage and channels belong to one origin, its port included. */
import { hasCsrf, setCsrf } from "./http";

const NAME = "sfumato-tab";
const PATIENCE = 400;

/** Keep the secret for this tab and its reloads, and give it to new tabs of the same origin that ask. */
export function keepSecret(secret: string): void {
  setCsrf(secret);
  window.sessionStorage.setItem(NAME, secret);
}

/** The secret of this tab, or of another one that is open. Without any, the person signs in again. */
export async function findSecret(): Promise<void> {
  const channel = new BroadcastChannel(NAME);
  const kept = window.sessionStorage.getItem(NAME);
  if (kept && !hasCsrf()) setCsrf(kept);
  if (!hasCsrf()) await ask(channel);
  channel.onmessage = (event: MessageEvent<{ wanted?: boolean }>) => {
    const secret = window.sessionStorage.getItem(NAME);
    if (event.data.wanted && secret) channel.postMessage({ secret });
  };
}

function ask(channel: BroadcastChannel): Promise<void> {
  return new Promise((resolve) => {
    const timer = window.setTimeout(resolve, PATIENCE);
    channel.onmessage = (event: MessageEvent<{ secret?: string }>) => {
      if (!event.data.secret) return;
      keepSecret(event.data.secret);
      window.clearTimeout(timer);
      resolve();
    };
    channel.postMessage({ wanted: true });
  });
}
