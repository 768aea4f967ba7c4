// Package crd makes kinds for the server in memory from custom resource definitions. It uses the API server's own libraries for pruning,
// defaulting, validation and CEL rules, and for the merges of server-side apply.
package crd
