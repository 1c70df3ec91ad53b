/** Message catalogue: the English text is the key. A missing translation shows the English text. */
const catalogues: Record<string, Record<string, string>> = {
  de: {
    Data: "Daten", Roles: "Rollen", Hierarchies: "Hierarchien", Protect: "Schützen", Compare: "Vergleichen",
    Attack: "Angreifen", Report: "Bericht", Ask: "Fragen", Undo: "Rückgängig", Redo: "Wiederholen", Recipe: "Rezept",
    Run: "Ausführen", Cancel: "Abbrechen", Save: "Speichern",
  },
  fr: {
    Data: "Données", Roles: "Rôles", Hierarchies: "Hiérarchies", Protect: "Protéger", Compare: "Comparer",
    Attack: "Attaquer", Report: "Rapport", Ask: "Interroger", Undo: "Annuler", Redo: "Rétablir", Recipe: "Recette",
    Run: "Exécuter", Cancel: "Interrompre", Save: "Enregistrer",
  },
};

let language = "en";

/** Use the catalogue of a language, such as "de"; English for languages without one. */
export function setLanguage(tag: string): void {
  language = tag.slice(0, 2).toLowerCase();
}

/** A message in the chosen language; {name} is replaced by the value of that name. */
export function t(text: string, values: Record<string, string | number> = {}): string {
  const found = catalogues[language]?.[text] ?? text;
  return found.replace(/\{(\w+)\}/g, (whole, name: string) => String(values[name] ?? whole));
}
