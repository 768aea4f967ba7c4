// Package argocd tests the health check for Argo CD in docs/guides/other-tools.md: it runs the script on that page, and compares its
// results with kstatus. It contains no code for users.
package argocd
