/** Who is signed in, and how refusals of changes are shown. */
import { createContext, useContext } from "react";
import type { Me } from "./api";

export interface Session {
  me: Me;
  /** Whether the account has one of these roles. */
  is: (...roles: string[]) => boolean;
  /** Makes a change; a refusal is shown. Returns what the server answered, or undefined. */
  change: (action: () => Promise<unknown>) => Promise<Record<string, unknown> | undefined>;
  signOut: () => void;
}

export const SessionContext = createContext<Session | null>(null);

export function useSession(): Session {
  const session = useContext(SessionContext);
  if (session === null) throw new Error("no session");
  return session;
}
