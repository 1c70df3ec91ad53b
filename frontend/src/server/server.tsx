/** Start of the pages of the server. */
import { createRoot } from "react-dom/client";
import { setRestart } from "../http";
import { setLanguage } from "../messages";
import { ServerApp } from "./frame";

setLanguage(navigator.language);
setRestart("Ask the administrator whether the server runs, then reload the page.");
const place = document.getElementById("app");
if (place) createRoot(place).render(<ServerApp />);
