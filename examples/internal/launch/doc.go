// Package launch builds the example operators, and creates the access to the API server that they have in a cluster.
package launch
