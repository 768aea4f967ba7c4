package test

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	eruv1 "github.com/opblocks/opblocks/examples/eru/api/v1"
	"github.com/opblocks/opblocks/schedule"
)

// BenchmarkStart measures an operator that starts with many enabled Erus without a status: the time until all have their next due
// time, the heap, and the time that another operator needs to find nothing to do. The number of Erus is 10,000, or ERUS. Run it
// once: -benchtime 1x.
func BenchmarkStart(b *testing.B) {
	many := number("ERUS", 10_000)
	u := newUser(b, apiServer(b))
	names := u.createMany(b, many, func(name string) eruv1.EruSpec { return enabled(name, "0 4 * * *") })
	for b.Loop() {
		before := heap()
		began := time.Now()
		o := startOperator(b, realTime, u.ControlPlane.Config(), ctrl.Options{}, u.Namespace)
		synced := time.Since(began)
		u.scheduledMany(b, many)
		b.ReportMetric(synced.Seconds(), "s-to-read-all")
		b.ReportMetric(time.Since(began).Seconds(), "s-to-schedule-all")
		b.ReportMetric(heap()-before, "MB-heap")
		for what, n := range o.Requests.Take() {
			b.ReportMetric(float64(n)/float64(many), strings.ReplaceAll(what, " ", "-"))
		}
		o.Stop()

		began = time.Now()
		o = startOperator(b, realTime, u.ControlPlane.Config(), ctrl.Options{}, u.Namespace)
		require.Eventually(b, func() bool {
			return !slices.ContainsFunc(names, func(name string) bool { return o.Passes(u.eru(name)) == 0 })
		}, 5*time.Minute, 10*time.Millisecond)
		b.ReportMetric(time.Since(began).Seconds(), "s-to-start-again")
		b.ReportMetric(float64(len(o.Requests.Take())), "kinds-of-requests-then")
		o.Stop()
	}
}

// BenchmarkLateness measures how long after its place in the spread each of 1,000 Deployments that are due in the same minute is
// restarted, for some spreads. It waits for that minute.
func BenchmarkLateness(b *testing.B) {
	many := number("ERUS", 1000)
	for _, spread := range []int64{0, 10, 60} {
		b.Run(fmt.Sprintf("Spread%ds", spread), func(b *testing.B) {
			for b.Loop() {
				u := newUser(b, apiServer(b))
				due := time.Now().Add(90 * time.Second).Truncate(time.Minute)
				names := u.createMany(b, many, func(name string) eruv1.EruSpec {
					spec := enabled(name, fmt.Sprintf("%d %d * * *", due.UTC().Minute(), due.UTC().Hour()))
					spec.SpreadSeconds = spread
					return spec
				})
				o := startOperator(b, realTime, u.ControlPlane.Config(), ctrl.Options{}, u.Namespace)
				u.scheduledMany(b, many)
				require.True(b, time.Now().Before(due), "the machine is too slow to be ready in time")
				deployments := u.follow(b, time.Now)
				require.Eventually(b, func() bool { return deployments.count() == many }, 5*time.Minute, 10*time.Millisecond)
				deployments.stop()
				o.Stop()
				var late []time.Duration
				for _, name := range names {
					eru := &eruv1.Eru{}
					require.NoError(b, u.Get(context.Background(), client.ObjectKey{Namespace: u.Namespace, Name: name}, eru))
					require.Len(b, deployments.restarts[name], 1)
					place := schedule.Offset(eru.UID, time.Duration(spread)*time.Second)
					late = append(late, deployments.restarts[name][0].at.Sub(due.Add(place)))
				}
				slices.Sort(late)
				b.ReportMetric(late[many/2].Seconds(), "s-late-median")
				b.ReportMetric(late[many-1].Seconds(), "s-late-most")
			}
		})
	}
}

// BenchmarkDowntime measures an operator that was down while 1,000 Erus were due several times: the time until each Deployment
// was restarted once. It checks that none is restarted if the deadline has passed.
func BenchmarkDowntime(b *testing.B) {
	many := number("ERUS", 1000)
	for b.Loop() {
		u := newUser(b, apiServer(b))
		r, now := stepped()
		names := u.createMany(b, many, func(name string) eruv1.EruSpec {
			spec := enabled(name, "0 * * * *")
			if n, _ := strconv.Atoi(name[len("web-"):]); n%10 == 0 {
				spec.StartingDeadlineSeconds = new(int64(60))
			}
			return spec
		})
		o := startOperator(b, r, u.ControlPlane.Config(), ctrl.Options{}, u.Namespace)
		u.scheduledMany(b, many)
		o.Stop()
		deployments := u.follow(b, time.Now)
		now.SetTime(four.Add(5 * time.Minute))
		began := time.Now()
		o = startOperator(b, r, u.ControlPlane.Config(), ctrl.Options{}, u.Namespace)
		require.Eventually(b, func() bool { return deployments.count() == many-many/10 }, 5*time.Minute, 10*time.Millisecond)
		b.ReportMetric(time.Since(began).Seconds(), "s-to-restart-all")
		o.Stop()
		deployments.stop()
		for _, name := range names {
			n, _ := strconv.Atoi(name[len("web-"):])
			want := 1
			if n%10 == 0 {
				want = 0
			}
			require.Len(b, deployments.restarts[name], want, name)
		}
	}
}

func number(variable string, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv(variable)); err == nil {
		return n
	}
	return otherwise
}

// heap returns the size of the heap in use, in MB.
func heap() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc) / 1e6
}
