//go:build !race

// An exploration runs one pass at a time, so the race detector finds nothing in it. With it, the exploration would take ten times as long.

package guides

import (
	"context"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/ownedresources"
	"github.com/opblocks/opblocks/reconcile"
	"github.com/opblocks/opblocks/reconcile/reconciletest"
	"github.com/opblocks/opblocks/reconcile/secrets"
)

// SetupServers adds the controller of the guide's section about certificates to a manager.
func SetupServers(mgr ctrl.Manager) error {
	version := ownedresources.From(func(ctx context.Context, r client.Reader, s *Shop) (string, error) {
		version, _, err := certificateOf(ctx, r, s, time.Now())
		return version, err
	}, ownedresources.Reads(&corev1.Secret{}, tlsSecret))
	servers := ownedresources.BuildFrom(version, serverStatefulSet)
	return reconcile.For(mgr,
		reconcile.Named("service", ownedresources.Ensure(ownedresources.Build(databaseService))),
		reconcile.Named("certificate", reconcile.Func(checkCertificate)).Reads(&corev1.Secret{}, tlsSecret).Reporting("CertificateReady"),
		reconcile.Named("servers", ownedresources.Ensure(servers)),
	).Complete()
}

// tlsSecret returns the Secret that a Shop names. Its changes trigger a pass.
func tlsSecret(s *Shop) []types.NamespacedName { return []types.NamespacedName{{Name: s.Spec.TLS}} }

// certificateOf returns the version of the certificate, and when it ends. The error is a wait if servers cannot use it.
func certificateOf(ctx context.Context, r client.Reader, s *Shop, now time.Time) (version string, ends time.Time, err error) {
	return secrets.CheckTLS(ctx, r, client.ObjectKey{Namespace: s.Namespace, Name: s.Spec.TLS}, now, s.Name+"."+s.Namespace+".svc")
}

// checkCertificate ends the pass if servers could not use the certificate, so that no pod is replaced by one that cannot start. The next
// pass comes when the Secret changes, and when the certificate ends.
func checkCertificate(ctx context.Context, c client.Client, s *Shop) error {
	now := time.Now()
	_, ends, err := certificateOf(ctx, c, s, now)
	if err != nil {
		return reconcile.Halt(err)
	}
	return reconcile.SuccessUntil("", ends.Sub(now), "the certificate is valid until %s", ends.UTC().Format(time.RFC3339))
}

// certificateVersion is an annotation of pods. They are replaced when it changes.
const certificateVersion = "shop.example.com/certificate"

func serverStatefulSet(s *Shop, version string) (*appsv1.StatefulSet, error) {
	set := ownedresources.NewStatefulSet(s, nil, corev1.Container{
		Name: "web", Image: s.Spec.Image,
		VolumeMounts: []corev1.VolumeMount{{Name: "tls", MountPath: "/tls", ReadOnly: true}},
	})
	set.Spec.Replicas = s.Spec.Replicas
	set.Spec.Template.Annotations = map[string]string{certificateVersion: version}
	set.Spec.Template.Spec.Volumes = []corev1.Volume{{
		Name: "tls", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: s.Spec.TLS}},
	}}
	return set, nil
}

func TestServersSurviveEveryFault(t *testing.T) {
	given := types.NamespacedName{Namespace: "default", Name: "web-tls"}
	renewed := reconciletest.TLSSecret(given, 48*time.Hour, "web.default.svc")
	reconciletest.Explore(t, reconciletest.Scenario{
		Scheme: scheme, CRDs: []string{"testdata"},
		Start: func(p *reconciletest.Process) error { return SetupServers(p.Manager()) },
		Actions: []reconciletest.Action{
			reconciletest.Create(shop(func(s *ShopSpec) { s.TLS = given.Name })).Then(shows("SecretNotFound")),
			reconciletest.Create(reconciletest.TLSSecret(given, 24*time.Hour, "web.default.svc")).Then(reconciletest.Ready(shop())),
			reconciletest.Wait(24 * time.Hour).Then(shows("CertificateExpired")),
			reconciletest.Change(renewed, func(s *corev1.Secret) { s.Data = renewed.Data }).Then(reconciletest.Ready(shop())),
			reconciletest.Delete(shop()),
		},
		Options: reconciletest.Options{Limit: 100},
	})
}
