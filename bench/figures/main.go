// Command figures reads the output of `make bench`, draws it as SVG pictures, and fills the numbers into the text of a page:
//
//	go run ./figures -text figures/page.tmpl -page ../docs/figures.md < ../bin/bench.txt
//
// The pictures are written beside the page. Nothing is written if a result is missing.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

func main() {
	text := flag.String("text", "figures/page.tmpl", "the text of the page, with marks for the numbers")
	page := flag.String("page", "../docs/figures.md", "the page to write")
	flag.Parse()
	if err := run(os.Stdin, *text, *page); err != nil {
		fmt.Fprintln(os.Stderr, "figures:", err)
		os.Exit(1)
	}
}

func run(in io.Reader, text, page string) error {
	r, err := parse(in)
	if err != nil {
		return err
	}
	parts, err := blocks(r)
	if err != nil {
		return err
	}
	before, err := os.ReadFile(text)
	if err != nil {
		return err
	}
	filled, err := fill(string(before), parts)
	if err != nil {
		return err
	}
	files := map[string][]byte{page: []byte(filled)}
	for name, panels := range pictures(r) {
		var picture bytes.Buffer
		if err := draw(&picture, panels); err != nil {
			return err
		}
		files[filepath.Join(filepath.Dir(page), name)] = picture.Bytes()
	}
	for name, content := range files {
		if err := os.WriteFile(name, content, 0o644); err != nil {
			return err
		}
	}
	return nil
}
