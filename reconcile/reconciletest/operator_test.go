package reconciletest_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/opblocks/opblocks/reconcile/reconciletest"
)

// shopFunc is one pass over a shop, written by hand.
type shopFunc func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error)

type shopReconciler struct {
	client.Client
	pass shopFunc
}

func (r *shopReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	s := &Shop{}
	if err := r.Get(ctx, req.NamespacedName, s); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	return r.pass(ctx, r.Client, s)
}

// of returns the scenario of an operator without a manager. pass returns the function that each process calls in its passes.
func of(pass func(p *reconciletest.Process) shopFunc, actions ...reconciletest.Action) reconciletest.Scenario {
	return reconciletest.Scenario{
		Scheme: scheme, CRDs: []string{"testdata"},
		Start: func(p *reconciletest.Process) error {
			p.Reconcile(&Shop{}, &shopReconciler{p.Client(), pass(p)})
			return nil
		},
		Actions: actions,
	}
}

// managed returns the scenario of an operator with a manager, so that its watches matter.
func managed(setup func(p *reconciletest.Process, b *ctrl.Builder) ctrlreconcile.Reconciler, actions ...reconciletest.Action) reconciletest.Scenario {
	return reconciletest.Scenario{
		Scheme: scheme, CRDs: []string{"testdata"},
		Start: func(p *reconciletest.Process) error {
			b := ctrl.NewControllerManagedBy(p.Manager()).Named("shop")
			return b.Complete(setup(p, b))
		},
		Actions: actions,
	}
}

const finalizer = "example.com/account"

func ensureFinalizer(ctx context.Context, c client.Client, s *Shop) error {
	if !controllerutil.AddFinalizer(s, finalizer) {
		return nil
	}
	return c.Update(ctx, s)
}

func removeFinalizer(ctx context.Context, c client.Client, s *Shop) error {
	if !controllerutil.RemoveFinalizer(s, finalizer) {
		return nil
	}
	return client.IgnoreNotFound(c.Update(ctx, s))
}

// open sets the phase in the status.
func open(ctx context.Context, c client.Client, s *Shop, phase string) error {
	if s.Status.Phase == phase {
		return nil
	}
	s.Status.Phase = phase
	return c.Status().Update(ctx, s)
}

// owned returns a ConfigMap that the shop owns.
func owned(c client.Client, s *Shop, name string, data map[string]string) *corev1.ConfigMap {
	made := config(name)
	made.Data = data
	if err := controllerutil.SetControllerReference(s, made, c.Scheme()); err != nil {
		panic(err)
	}
	return made
}

// ensure creates or updates a ConfigMap. It returns an error if another object owns it.
func ensure(ctx context.Context, c client.Client, s *Shop, want *corev1.ConfigMap) error {
	is := &corev1.ConfigMap{}
	err := c.Get(ctx, client.ObjectKeyFromObject(want), is)
	if apierrors.IsNotFound(err) {
		return c.Create(ctx, want)
	}
	if err != nil {
		return err
	}
	if !metav1.IsControlledBy(is, s) {
		return errors.New("the ConfigMap has another owner")
	}
	if maps.Equal(is.Data, want.Data) {
		return nil
	}
	is.Data = want.Data
	return c.Update(ctx, is)
}

// accounts is a service outside of the cluster.
type accounts struct {
	All []string // names, or names with numbers
}

func (a *accounts) State() any { return a.All }

func newAccounts() reconciletest.External { return &accounts{} }

// accountClient is the operator's client of the service.
type accountClient struct {
	*accounts
	process *reconciletest.Process
}

// accountsOf returns the process's client of the service.
func accountsOf(p *reconciletest.Process) accountClient {
	return accountClient{p.External().(*accounts), p}
}

var errNoAccount = errors.New("there is no such account")

func (a accountClient) exists(ctx context.Context, name string) (found bool, err error) {
	err = a.process.Query(ctx, "account "+name, func() error {
		found = slices.Contains(a.All, name)
		return nil
	})
	return found, err
}

// create creates an account, even if there is one of that name.
func (a accountClient) create(ctx context.Context, name string) error {
	return a.process.Effect(ctx, "create account "+name, func() error {
		a.All = append(a.All, name)
		return nil
	})
}

// keep creates an account if there is none and the shop exists. It reads the shop from the API server: the cache of a process that has just
// started may be old.
func (a accountClient) keep(ctx context.Context, name string) error {
	found, err := a.exists(ctx, name)
	if err != nil || found {
		return err
	}
	s := shop()
	if err := a.process.APIReader().Get(ctx, client.ObjectKeyFromObject(s), s); err != nil {
		return err
	}
	if s.DeletionTimestamp != nil {
		return errors.New("the shop is being deleted, and the cache does not show that yet")
	}
	return a.keepFor(ctx, name)
}

// keepFor creates an account if there is none, and does not ask whether the shop exists.
func (a accountClient) keepFor(ctx context.Context, name string) error {
	return a.process.Effect(ctx, "keep account "+name, func() error {
		if !slices.Contains(a.All, name) {
			a.All = append(a.All, name)
		}
		return nil
	})
}

func (a accountClient) drop(ctx context.Context, name string) error {
	return a.process.Effect(ctx, "drop account "+name, func() error {
		i := slices.Index(a.All, name)
		if i < 0 {
			return errNoAccount
		}
		a.All = slices.Delete(a.All, i, i+1)
		return nil
	})
}

func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// soundOperators send something in every pass, so also in passes that change nothing. Faults happen at these requests too.
var soundOperators = map[string]func(p *reconciletest.Process) shopFunc{
	"ReadsTheServerInEachPass": func(p *reconciletest.Process) shopFunc {
		return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
			is := config("settings")
			if err := p.APIReader().Get(ctx, client.ObjectKeyFromObject(is), is); client.IgnoreNotFound(err) != nil {
				return ctrl.Result{}, firstOf(err, open(ctx, c, s, "Failed"))
			}
			return ctrl.Result{}, open(ctx, c, s, "Open")
		}
	},
	"QueriesInEachPass": func(p *reconciletest.Process) shopFunc {
		return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
			if err := accountsOf(p).keep(ctx, s.Name); err != nil {
				return ctrl.Result{}, firstOf(err, open(ctx, c, s, "Failed"))
			}
			return ctrl.Result{}, open(ctx, c, s, "Open")
		}
	},
	"IdempotentEffectInEachPass": func(p *reconciletest.Process) shopFunc {
		external := p.External().(*accounts)
		return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
			err := p.Effect(ctx, "set account "+s.Name, func() error {
				external.All = []string{s.Name + ": " + s.Spec.Motto}
				return nil
			})
			if err != nil {
				return ctrl.Result{}, firstOf(err, open(ctx, c, s, "Failed"))
			}
			return ctrl.Result{}, open(ctx, c, s, "Open")
		}
	},
	"AppliesAChildInEachPass": func(*reconciletest.Process) shopFunc {
		return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
			want := corev1ac.ConfigMap(s.Name, s.Namespace).WithData(map[string]string{"motto": s.Spec.Motto})
			if err := c.Apply(ctx, want, client.FieldOwner("shop"), client.ForceOwnership); err != nil {
				return ctrl.Result{}, firstOf(err, open(ctx, c, s, "Failed"))
			}
			return ctrl.Result{}, open(ctx, c, s, "Open")
		}
	},
	"UpdatesTheStatusInEachPass": func(*reconciletest.Process) shopFunc {
		return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
			s.Status.Phase, s.Status.Message = "Open", s.Spec.Motto
			return ctrl.Result{}, c.Status().Update(ctx, s)
		}
	},
}

// with returns the scenario with the options.
func with(s reconciletest.Scenario, options reconciletest.Options) reconciletest.Scenario {
	s.Options = options
	return s
}

func hasFault(r *reconciletest.Report, kind reconciletest.FaultKind) bool {
	for _, f := range r.Failures {
		if len(f.Faults) == 1 && f.Faults[0].Kind == kind {
			return true
		}
	}
	return false
}

// faulty is an operator with one typical mistake, or without it if sound is true.
type faulty struct {
	reason   string // what is wrong with it
	scenario func(sound bool) reconciletest.Scenario
	fault    reconciletest.FaultKind   // the fault that shows the mistake; empty if none is needed
	kind     reconciletest.FindingKind // the kind of all failures; empty: any
	says     []string                  // what the report must contain, so that the author understands
	never    []string                  // what it must not contain, since it is not true of the mistake
}

// resultOf returns the delay, unless there is an error.
func resultOf(delay time.Duration, err error) (ctrl.Result, error) {
	if err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: delay}, nil
}
