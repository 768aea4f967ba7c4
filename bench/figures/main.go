// Command figures reads the output of benchmarks from its input and draws it as an SVG picture:
//
//	go test -run '^$' -bench . ./... | go run ./figures > ../docs/figures.svg
package main

import (
	"fmt"
	"os"
)

func main() {
	results, err := parse(os.Stdin)
	if err == nil {
		err = draw(os.Stdout, panels(results))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "figures:", err)
		os.Exit(1)
	}
}
