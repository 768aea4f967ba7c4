package test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/client"

	userv1alpha1 "github.com/opblocks/opblocks/examples/databaseuser/api/v1alpha1"
)

// BenchmarkOtherNamespace measures how long a DatabaseUser waits for its first status while the operator is busy with 40 DatabaseUsers of another
// namespace, each with many grants. Run it once: -benchtime 1x.
func BenchmarkOtherNamespace(b *testing.B) {
	for _, size := range []struct{ hosts, grants int }{{32, 64}, {10, 20}} {
		b.Run(fmt.Sprintf("grants=%d", size.hosts*size.grants), func(b *testing.B) {
			for b.Loop() {
				busy, quiet := newTenant(b), newTenant(b)
				o := busy.operate(b, sharedServer(b), func(s *settings) { s.cache = append(s.cache, quiet.Namespace) })
				busy.setPassword(b, "busy", "swordfish")
				quiet.setPassword(b, "quiet", "swordfish")
				for i := range 40 {
					busy.create(b, fmt.Sprint("busy", i), func(u *userv1alpha1.DatabaseUser) {
						u.Spec.Password.Name = "busy"
						for host := range size.hosts {
							u.Spec.Hosts = append(u.Spec.Hosts, fmt.Sprintf("10.0.0.%d", host))
						}
						for g := range size.grants {
							u.Spec.Grants = append(u.Spec.Grants, userv1alpha1.Grant{Database: fmt.Sprint("db", g), Privileges: []userv1alpha1.Privilege{"SELECT"}})
						}
					})
				}
				require.Eventually(b, func() bool { return strings.Contains(fmt.Sprint(o.calls.Take()), "Grant ") }, time.Minute, time.Millisecond)
				began := time.Now()
				u := quiet.create(b, "quiet", func(u *userv1alpha1.DatabaseUser) { u.Labels[userv1alpha1.TargetLabel] = busy.unique("shop") })
				require.Eventually(b, func() bool {
					return quiet.Get(b.Context(), client.ObjectKeyFromObject(u), u) == nil && len(u.Status.Conditions) > 0
				}, 10*time.Minute, 10*time.Millisecond)
				b.ReportMetric(time.Since(began).Seconds(), "s-to-first-status")
				o.Stop()
			}
		})
	}
}
