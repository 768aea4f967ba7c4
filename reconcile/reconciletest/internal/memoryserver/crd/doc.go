// Package crd makes kinds of custom resource definitions for the server in memory. It uses the API server's own
// libraries for pruning, defaulting, validation and rules in CEL, and for how server-side apply merges.
package crd
