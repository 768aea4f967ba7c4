// Command monitoring writes the generated files of docs/monitoring: prometheusrule.yaml from rules.yaml, and the picture of the dashboard
// from dashboard.json and the metrics of a recorded run.
//
//	go run .            # uses the run in testdata/run.txt
//	go run . -record    # first records a new run: an example on a real control plane, for about three minutes
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"time"
)

// These are files of this package and files for users, relative to the folder of this module.
const (
	docs          = "../../docs"
	recordedRun   = "testdata/run.txt"
	scrapesPause  = time.Second
	recordedPause = 12 * time.Second // between the events of a recorded run
)

func main() {
	record := flag.Bool("record", false, "Record a new run.")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := write(ctx, *record); err != nil {
		fmt.Fprintln(os.Stderr, "monitoring:", err)
		os.Exit(1) //nolint:gocritic // the process ends
	}
}

func write(ctx context.Context, record bool) error {
	d, err := loadDashboard(filepath.Join(docs, "monitoring", "dashboard.json"))
	if err != nil {
		return err
	}
	r, err := loadRules(filepath.Join(docs, "monitoring", "rules.yaml"))
	if err != nil {
		return err
	}
	if record {
		if err := recordRun(ctx, d, r); err != nil {
			return err
		}
	}
	files, err := derived(d)
	if err != nil {
		return err
	}
	for name, content := range files {
		if err := os.WriteFile(name, content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// derived returns the content of the generated files, by name.
func derived(d *dashboard) (map[string][]byte, error) {
	rules, err := os.ReadFile(filepath.Join(docs, "monitoring", "rules.yaml"))
	if err != nil {
		return nil, err
	}
	db, err := readRun(recordedRun)
	if err != nil {
		return nil, err
	}
	picture, err := draw(d, db)
	if err != nil {
		return nil, err
	}
	return map[string][]byte{
		filepath.Join(docs, "monitoring", "prometheusrule.yaml"): prometheusRule(rules),
		filepath.Join(docs, "monitoring.svg"):                    picture,
	}, nil
}

// recordRun runs the scenario slowly, and writes the metrics that the queries read to the file of the recorded run.
func recordRun(ctx context.Context, d *dashboard, r *rules) error {
	wanted, err := metricsOf(append(d.queries(), r.queries()...))
	if err != nil {
		return err
	}
	s, err := startScenario(ctx, nil)
	if err != nil {
		return err
	}
	if err := errors.Join(s.play(ctx, recordedPause), s.stop()); err != nil {
		return err
	}
	return writeRun(recordedRun, s.metrics, wanted)
}
