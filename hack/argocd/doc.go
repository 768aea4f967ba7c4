// Package argocd tests the health check for Argo CD that docs/guides/other-tools.md has: it runs the text of the page, and compares its
// answers with kstatus. It contains no code for users.
package argocd
