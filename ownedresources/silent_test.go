package ownedresources

import (
	"context"
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
			env := newServerEnv(t)
			service := func(clusterIP string, port int32) client.Object {
				s := env.service()
				s.Spec.ClusterIP, s.Spec.Ports[0].Port = clusterIP, port
				if form == "Typed" {
					return s
				}
				return asUnstructured(t, env, s)
			}
			env.expect(t, service("None", 80), apply.Created, "POST services")
			for range 2 {
				_, err := env.apply(t, service("", 81))
				require.True(t, apierrors.IsInvalid(err), "%v", err)
				require.ErrorContains(t, err, "headless")
				require.ErrorContains(t, err, "Recreate")
			}
			var live corev1.Service
			env.live(t, &live)
			require.EqualValues(t, 81, live.Spec.Ports[0].Port, "other changes are made nevertheless")
			_, err := Diff(t.Context(), env.client, env.owner, service("", 81))
			require.ErrorContains(t, err, "headless")

			_, err = env.apply(t, service("", 81), withRecreate())
			require.ErrorAs(t, err, new(*owned.WaitingError))
			result, err := env.apply(t, service("", 81), withRecreate())
			require.NoError(t, err)
			require.Equal(t, apply.Created, result.Operation)
			env.live(t, &live)
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
					env := newServerEnv(t)
					deployment := func(account string) client.Object {
						d := env.deployment()
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
						return asUnstructured(t, env, d)
					}
					env.expect(t, deployment("a"), apply.Created, "POST deployments")
					last := "a"
					if start == "AfterApply" {
						last = "b"
						_, err := env.apply(t, deployment(last))
						require.NoError(t, err)
					}
					env.expect(t, deployment(last), apply.Unchanged, none...)
					var live appsv1.Deployment
					env.live(t, &live)
					require.Equal(t, last, live.Spec.Template.Spec.ServiceAccountName)
					_, err := env.apply(t, deployment(""))
					require.NoError(t, err)
					env.live(t, &live)
					require.Empty(t, live.Spec.Template.Spec.ServiceAccountName)
					require.Empty(t, live.Spec.Template.Spec.DeprecatedServiceAccount)
					env.expect(t, deployment(""), apply.Unchanged, none...)
				})
			}
		}
	}
}

// staleClient is a client whose cache still shows an object as it was.
type staleClient struct {
	client.Client
	was *appsv1.Deployment
}

func (c staleClient) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if d, ok := obj.(*appsv1.Deployment); ok {
		c.was.DeepCopyInto(d)
		return nil
	}
	return c.Client.Get(ctx, key, obj, opts...)
}

func TestApplyWithAStaleCache(t *testing.T) {
	setUp := func(t *testing.T, edit func(*appsv1.Deployment)) (env *serverEnv, changed *appsv1.Deployment) {
		env = newServerEnv(t)
		env.expect(t, env.deployment(), apply.Created, "POST deployments")
		changed = env.deployment()
		changed.Labels["example.com/changed"] = "1"
		env.expect(t, changed, apply.Applied, "GET deployments", "PATCH deployments", "PATCH deployments")
		was := &appsv1.Deployment{}
		env.live(t, was)
		byHand(t, env, &appsv1.Deployment{}, edit)
		env.applier = apply.New()
		env.client = staleClient{env.client, was}
		changed.Labels["example.com/changed"] = "2"
		return env, changed
	}
	t.Run("OwnerReferenceRemoved", func(t *testing.T) {
		env, changed := setUp(t, func(d *appsv1.Deployment) { d.OwnerReferences = nil })
		_, err := env.apply(t, changed)
		require.ErrorAs(t, err, new(*owned.OwnershipError), "somebody has taken it away from its owner")
		live := &appsv1.Deployment{}
		env.live(t, live)
		require.Empty(t, live.OwnerReferences)
		require.Equal(t, "1", live.Labels["example.com/changed"])
	})
	t.Run("SomethingElseChanged", func(t *testing.T) {
		env, changed := setUp(t, func(d *appsv1.Deployment) { d.Labels["theirs"] = "x" })
		_, err := env.apply(t, changed)
		require.NoError(t, err)
		require.Equal(t, []string{"PATCH deployments", "GET deployments", "PATCH deployments"}, env.sent.Sent())
		live := &appsv1.Deployment{}
		env.live(t, live)
		require.Equal(t, "2", live.Labels["example.com/changed"])
		require.Equal(t, "x", live.Labels["theirs"])
	})
}
