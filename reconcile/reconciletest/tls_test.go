package reconciletest_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/opblocks/opblocks/reconcile/reconciletest"
	"github.com/opblocks/opblocks/reconcile/secrets"
)

var startOfClock = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

func TestTLSSecret(t *testing.T) {
	name := types.NamespacedName{Namespace: "default", Name: "web-tls"}
	certificate := reconciletest.TLSSecret(name, time.Hour, "web.default.svc", "*.web.default.svc")
	check := func(certificate *corev1.Secret, now time.Time, hosts ...string) (time.Time, error) {
		_, ends, err := secrets.CheckTLS(t.Context(), fake.NewFakeClient(certificate.DeepCopy()), name, now, hosts...)
		return ends, err
	}
	ends, err := check(certificate, startOfClock, "web.default.svc", "web-0.web.default.svc")
	require.NoError(t, err)
	require.Equal(t, startOfClock.Add(time.Hour), ends)
	_, err = check(certificate, ends)
	require.ErrorContains(t, err, "has expired")
	_, err = check(certificate, startOfClock, "db.default.svc")
	require.ErrorContains(t, err, "is not for db.default.svc")

	require.Equal(t, certificate, reconciletest.TLSSecret(name, time.Hour, "web.default.svc", "*.web.default.svc"), "runs can be compared")
	other := reconciletest.TLSSecret(name, time.Hour, "db.default.svc")
	require.NotEqual(t, certificate.Data["tls.key"], other.Data["tls.key"])
	require.Panics(t, func() { reconciletest.TLSSecret(name, time.Hour, "läden.default.svc") }, "a mistake of the test")
	certificate.Data["tls.key"] = other.Data["tls.key"]
	_, err = check(certificate, startOfClock)
	require.ErrorContains(t, err, "not a pair")
}
