package apply_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/owned"
	"github.com/opblocks/opblocks/internal/owned/apply"
)

func TestHeadlessServiceToOneWithAddress(t *testing.T) {
	for _, form := range []string{"Typed", "Unstructured"} {
		t.Run(form, func(t *testing.T) {
			env := newServer(t)
			service := func(clusterIP string, port int32) client.Object {
				s := env.Service()
				s.Spec.ClusterIP, s.Spec.Ports[0].Port = clusterIP, port
				if form == "Typed" {
					return s
				}
				return env.Unstructured(t, s)
			}
			env.Expect(t, service("None", 80), apply.Created, "POST services")
			for range 2 {
				_, err := env.Apply(t, service("", 81))
				require.True(t, apierrors.IsInvalid(err), "%v", err)
				require.ErrorContains(t, err, "headless")
				require.ErrorContains(t, err, "Recreate")
			}
			var live corev1.Service
			env.Live(t, &live)
			require.EqualValues(t, 81, live.Spec.Ports[0].Port, "other changes are made nevertheless")
			_, err := env.Diff(t, service("", 81))
			require.ErrorContains(t, err, "headless")

			_, err = env.Apply(t, service("", 81), withRecreate())
			require.ErrorAs(t, err, new(*owned.WaitingError))
			require.Equal(t, apply.Created, env.MustApply(t, service("", 81), withRecreate()).Operation)
			env.Live(t, &live)
			require.NotEqual(t, "None", live.Spec.ClusterIP)
		})
	}
}

// The API server copies each of the two names of a pod's service account to the other.
func TestDropServiceAccountName(t *testing.T) {
	names := map[string]func(*corev1.PodSpec, string){
		"":                func(pod *corev1.PodSpec, account string) { pod.ServiceAccountName = account },
		"ByItsOlderName":  func(pod *corev1.PodSpec, account string) { pod.DeprecatedServiceAccount = account },
		"ByTheOtherLater": nil,
	}
	for name, set := range names {
		for _, form := range []string{"Typed", "Unstructured"} {
			for _, start := range []string{"AfterPost", "AfterApply"} {
				t.Run(form+start+name, func(t *testing.T) {
					env := newServer(t)
					deployment := func(account string) client.Object {
						d := env.Deployment()
						switch {
						case set != nil:
							set(&d.Spec.Template.Spec, account)
						case account == "a":
							d.Spec.Template.Spec.DeprecatedServiceAccount = account
						default:
							d.Spec.Template.Spec.ServiceAccountName = account
						}
						if form == "Typed" {
							return d
						}
						return env.Unstructured(t, d)
					}
					env.Expect(t, deployment("a"), apply.Created, "POST deployments")
					last := "a"
					if start == "AfterApply" {
						last = "b"
						env.MustApply(t, deployment(last))
					}
					env.Settled(t, deployment(last))
					var live appsv1.Deployment
					env.Live(t, &live)
					require.Equal(t, last, live.Spec.Template.Spec.ServiceAccountName)
					env.MustApply(t, deployment(""))
					env.Live(t, &live)
					require.Empty(t, live.Spec.Template.Spec.ServiceAccountName)
					require.Empty(t, live.Spec.Template.Spec.DeprecatedServiceAccount)
					env.Settled(t, deployment(""))
				})
			}
		}
	}
}
