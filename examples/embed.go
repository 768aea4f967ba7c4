// Package examples embeds the source of the example operators. Command new copies one of them into a module of its own.
package examples

import "embed"

// Source has a folder for each example, and the folder internal with what their tests share. The requirements of a copy come from
// go.mod and go.sum.
//
//go:embed app cache databaseuser eru memcached topic internal go.mod go.sum
var Source embed.FS
