// Command figures measures the benchmarks, draws what they print as SVG pictures, and fills the numbers into the text of a page:
//
//	go run ./figures -measure
//
// The pictures are written beside the page. Nothing is written if a result is missing. Without -measure, the results of the last
// measurement are used.
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
)

const (
	resultsFile    = "../bin/bench.txt" // what the last measurement printed
	programsFolder = "../bin/k8s"       // the folder of the control plane that is measured
)

func main() {
	text := flag.String("text", "figures/page.tmpl", "the text of the page, with marks for the numbers")
	page := flag.String("page", "../docs/figures.md", "the page to write")
	again := flag.Bool("measure", false, "measure again, in about an hour")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if *again {
		if err := measure(ctx, resultsFile, programsFolder, suites, os.Stdout, os.Stderr); err != nil {
			fail(err)
		}
	}
	measured, err := os.Open(resultsFile)
	if err != nil {
		fail(fmt.Errorf("nothing was measured yet: run `make bench`: %w", err))
	}
	if err := run(measured, *text, *page); err != nil {
		fail(err)
	}
	fmt.Fprintf(os.Stderr, "opblocks: %s and its pictures have the figures of this run; see whether what is written around them still holds\n", *page)
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "figures:", err)
	os.Exit(1)
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
