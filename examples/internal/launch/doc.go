// Package launch builds the example operators and gives them the access that they have in a cluster.
package launch
