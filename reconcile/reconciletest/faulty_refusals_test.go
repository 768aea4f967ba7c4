package reconciletest_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/opblocks/opblocks/reconcile/reconciletest"
)

var createAndChange = []reconciletest.Action{
	reconciletest.Create(shop(func(s *Shop) { s.Spec.Motto = "less" })),
	reconciletest.Change(shop(), func(s *Shop) { s.Spec.Motto = "more" }),
}

// creating returns the scenario of an operator that creates a child in each pass. It ignores the error that the child exists.
func creating(child func(s *Shop) client.Object, refused func(ctx context.Context, c client.Client, s *Shop) error) reconciletest.Scenario {
	return of(func(*reconciletest.Process) shopFunc {
		return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
			if s.DeletionTimestamp != nil {
				return ctrl.Result{}, nil
			}
			made := child(s)
			if err := controllerutil.SetControllerReference(s, made, c.Scheme()); err != nil {
				return ctrl.Result{}, err
			}
			err := c.Create(ctx, made)
			if apierrors.IsAlreadyExists(err) && refused != nil {
				err = refused(ctx, c, s)
			}
			return ctrl.Result{}, client.IgnoreAlreadyExists(err)
		}
	}, createAndChange...)
}

// mottoOf returns the ConfigMap with the motto of a shop.
func mottoOf(s *Shop) client.Object {
	made := config(s.Name)
	made.Namespace, made.Data = s.Namespace, map[string]string{"motto": s.Spec.Motto}
	return made
}

// faultyRefusals are operators that treat the refused creation of an object as a success.
var faultyRefusals = map[string]faulty{
	"CreatesInPlaceOfUpdating": {
		reason: "a child is created in each pass, and never updated, since \"already exists\" counts as done",
		scenario: func(sound bool) reconciletest.Scenario {
			if !sound {
				return creating(mottoOf, nil)
			}
			return of(func(*reconciletest.Process) shopFunc {
				return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
					return ctrl.Result{}, ensure(ctx, c, s, owned(c, s, s.Name, map[string]string{"motto": s.Spec.Motto}))
				}
			}, createAndChange...)
		},
		kind: reconciletest.Findings.DoesNotSucceed,
		says: []string{"create ConfigMap default/web, and the object that exists has other values there: data.motto\n", "Apply the object, or read it and update what differs"},
	},
	"TakesAnObjectOfOthersForItsOwn": {
		reason: "the name of the child is taken by an object of somebody else, and \"already exists\" counts as done",
		scenario: func(sound bool) reconciletest.Scenario {
			s := creating(mottoOf, nil)
			if sound {
				s = creating(func(s *Shop) client.Object { return config(s.Name + "-motto") }, nil)
			}
			taken := config("web")
			taken.Data = map[string]string{"motto": "of somebody else"}
			s.Objects = []client.Object{taken}
			return s
		},
		kind: reconciletest.Findings.DoesNotSucceed,
		says: []string{"create ConfigMap default/web, and the object that exists has other values there: data.motto, metadata.ownerReferences"},
	},
}

// These operators also create objects that exist, and do it correctly.
func TestCreatesWell(t *testing.T) {
	lines := map[string]struct {
		reason   string
		scenario reconciletest.Scenario
	}{
		"Generated": {"a generated password is meant for a new Secret only", creating(func(s *Shop) client.Object {
			return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: s.Name}, StringData: map[string]string{"password": string(uuid.NewUUID())}}
		}, nil)},
		"Immutable": {"nobody can change an immutable ConfigMap", creating(func(s *Shop) client.Object {
			made := mottoOf(s).(*corev1.ConfigMap)
			made.Immutable = new(true)
			return made
		}, nil)},
		"Job": {"nobody can change the template of a Job", creating(func(s *Shop) client.Object {
			return &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: s.Name}, Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "shop", Image: "shop:1", Args: []string{s.Spec.Motto}}},
			}}}}
		}, nil)},
		"Updates": {"the operator creates first, and updates what exists", creating(mottoOf, func(ctx context.Context, c client.Client, s *Shop) error {
			return ensure(ctx, c, s, owned(c, s, s.Name, map[string]string{"motto": s.Spec.Motto}))
		})},
	}
	for name, line := range lines {
		t.Run(name, func(t *testing.T) {
			report := reconciletest.Explore(t, with(line.scenario, reconciletest.Options{WithoutFaults: true}))
			assert.Empty(t, report.Failures, line.reason)
		})
	}
}
