package schedule_test

import (
	"slices"
	"strconv"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/opblocks/opblocks/schedule"
)

// BenchmarkDue measures Due after the operator was down for some time. The goal is 5 µs after a year of missed
// minutes.
func BenchmarkDue(b *testing.B) {
	now := time.Date(2026, 3, 29, 0, 59, 30, 0, time.UTC)
	for _, text := range []string{"* * * * *", "30 2 * * *", "0 0 29 2 *", "@every 1s"} {
		for _, zone := range []string{"UTC", "Europe/Berlin"} {
			for _, down := range []struct {
				name  string
				since time.Time
			}{{"Minute", now.Add(-time.Minute)}, {"Year", now.AddDate(-1, 0, 0)}, {"Decades", now.AddDate(-40, 0, 0)}} {
				b.Run(text+"/"+zone+"/"+down.name, func(b *testing.B) {
					in := schedule.Input{Schedule: parsed(b, text, zone), Since: new(metav1.NewTime(down.since))}
					b.ReportAllocs()
					for b.Loop() {
						if _, err := schedule.Due(now, in); err != nil {
							b.Fatal(err)
						}
					}
				})
			}
		}
	}
}

func BenchmarkNext(b *testing.B) {
	for _, text := range []string{"* * * * *", "30 2 * * *", "0 0 29 2 *"} {
		b.Run(text, func(b *testing.B) {
			s, at := parsed(b, text, "Europe/Berlin"), time.Date(2096, 2, 29, 12, 0, 0, 0, time.UTC)
			for b.Loop() {
				s.Next(at)
			}
		})
	}
}

// BenchmarkParse measures Parse of five fields in a time zone. Each call reads the time zone from the system's
// database.
func BenchmarkParse(b *testing.B) {
	for b.Loop() {
		if _, err := schedule.Parse("30 2 * * MON-FRI", "Europe/Berlin"); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkMayStart(b *testing.B) {
	candidates := make([]schedule.Candidate, 10000)
	for i := range candidates {
		candidates[i].Object = types.NamespacedName{Namespace: "shop", Name: strconv.Itoa(i)}
	}
	for b.Loop() {
		candidates[5000].MayStart(10, slices.Values(candidates))
	}
}
