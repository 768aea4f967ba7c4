package ensemble_test

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

const finalizer = "ensembles.example.com/members"

// store has the methods of the store that the operator calls. Members are returned in the order in which they were added.
type store interface {
	Members(ctx context.Context, ensemble string) ([]string, error)
	Bootstrap(ctx context.Context, ensemble, first string) error // does nothing if the ensemble exists
	Add(ctx context.Context, ensemble, member string) error      // does nothing if the member exists
	Remove(ctx context.Context, ensemble, member string) error   // does nothing if the member does not exist
	Forget(ctx context.Context, ensemble string) error
}

// EnsembleReconciler reconciles Ensembles. Only the store knows who is a member. Pods and claims are created and deleted accordingly.
type EnsembleReconciler struct {
	client.Client
	APIReader client.Reader
	Scheme    *runtime.Scheme
	Store     store
}

// SetupWithManager adds the controller to the manager.
func (r *EnsembleReconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		For(&Ensemble{}).
		Owns(&corev1.Pod{}).
		Owns(&corev1.PersistentVolumeClaim{}).
		Owns(&corev1.Service{}).
		Complete(r)
}

// Reconcile makes one pass over an Ensemble.
func (r *EnsembleReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	e := &Ensemble{}
	if err := r.APIReader.Get(ctx, req.NamespacedName, e); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if e.DeletionTimestamp != nil {
		return ctrl.Result{}, r.finalize(ctx, e)
	}
	if controllerutil.AddFinalizer(e, finalizer) {
		if err := r.Update(ctx, e); err != nil {
			return ctrl.Result{}, fmt.Errorf("add finalizer: %w", err)
		}
	}
	before := e.Status.DeepCopy()
	if err := r.reconcile(ctx, e); err != nil {
		return ctrl.Result{}, err
	}
	if equality.Semantic.DeepEqual(*before, e.Status) {
		return ctrl.Result{}, nil
	}
	return ctrl.Result{}, client.IgnoreNotFound(r.Status().Update(ctx, e))
}

func (r *EnsembleReconciler) finalize(ctx context.Context, e *Ensemble) error {
	if !controllerutil.ContainsFinalizer(e, finalizer) {
		return nil
	}
	if err := r.Store.Forget(ctx, keyOf(e)); err != nil {
		return fmt.Errorf("forget the ensemble: %w", err)
	}
	controllerutil.RemoveFinalizer(e, finalizer)
	return client.IgnoreNotFound(r.Update(ctx, e))
}

// reconcile takes the next step, and sets the status in memory. While a member is not ready, it changes no other member.
func (r *EnsembleReconciler) reconcile(ctx context.Context, e *Ensemble) error {
	if err := r.reconcileService(ctx, e); err != nil {
		return fmt.Errorf("service: %w", err)
	}
	members, err := r.members(ctx, e)
	if err != nil {
		return fmt.Errorf("members: %w", err)
	}
	if err := r.sweep(ctx, e, members); err != nil {
		return fmt.Errorf("sweep: %w", err)
	}
	pods := map[string]*corev1.Pod{}
	for _, name := range members {
		if pods[name], err = r.reconcileMember(ctx, e, name); err != nil {
			return fmt.Errorf("member %s: %w", name, err)
		}
	}
	ready, waitsFor, outdated := inspect(e, members, pods)
	e.Status.Members, e.Status.Ready = members, ready

	switch {
	case waitsFor != "":
		setReady(e, metav1.ConditionFalse, "MemberNotReady", "member "+waitsFor+" is not ready")
		return nil
	case outdated != nil:
		setReady(e, metav1.ConditionFalse, "Updating", "pod "+outdated.Name+" is replaced")
		return client.IgnoreNotFound(r.Delete(ctx, outdated, client.Preconditions{UID: &outdated.UID}))
	case len(members) != e.Spec.Size:
		setReady(e, metav1.ConditionFalse, "Scaling", fmt.Sprintf("%d of %d members", len(members), e.Spec.Size))
		return r.scale(ctx, e, members)
	}
	setReady(e, metav1.ConditionTrue, "AllReady", fmt.Sprintf("%d members are ready", ready))
	return nil
}

// members returns the members in the store. If the ensemble has none, members bootstraps it.
func (r *EnsembleReconciler) members(ctx context.Context, e *Ensemble) ([]string, error) {
	members, err := r.Store.Members(ctx, keyOf(e))
	if err != nil || len(members) > 0 {
		return members, err
	}
	if err := r.Store.Bootstrap(ctx, keyOf(e), memberName(e, 0)); err != nil {
		return nil, err
	}
	return r.Store.Members(ctx, keyOf(e)) // another process may have added members
}

// inspect returns how many members have a ready pod of the wanted version. It also returns one member without a ready pod, and the pod of
// the last member with another version.
func inspect(e *Ensemble, members []string, pods map[string]*corev1.Pod) (ready int, waitsFor string, outdated *corev1.Pod) {
	for _, name := range members {
		pod := pods[name]
		switch {
		case pod == nil || !isReady(pod):
			waitsFor = name
		case pod.Labels[versionLabel] != e.Spec.Version:
			outdated = pod
		default:
			ready++
		}
	}
	return ready, waitsFor, outdated
}

// scale adds or removes one member in the store. The objects of the member follow in the same pass, or in the next one after a crash.
func (r *EnsembleReconciler) scale(ctx context.Context, e *Ensemble, members []string) error {
	if len(members) < e.Spec.Size {
		name := nextName(e, members)
		free, err := r.isFree(ctx, e, name)
		if err != nil || !free { // its event will trigger another pass
			return err
		}
		if err := r.Store.Add(ctx, keyOf(e), name); err != nil {
			return fmt.Errorf("add member: %w", err)
		}
		e.Status.Members = append(slices.Clone(members), name)
		_, err = r.reconcileMember(ctx, e, name)
		return err
	}
	last := members[len(members)-1]
	if err := r.Store.Remove(ctx, keyOf(e), last); err != nil {
		return fmt.Errorf("remove member: %w", err)
	}
	e.Status.Members = members[:len(members)-1]
	return r.sweep(ctx, e, e.Status.Members)
}

// nextName returns the first name that no member has.
func nextName(e *Ensemble, members []string) string {
	for i := 0; ; i++ {
		if name := memberName(e, i); !slices.Contains(members, name) {
			return name
		}
	}
}

func setReady(e *Ensemble, status metav1.ConditionStatus, reason, message string) {
	meta.SetStatusCondition(&e.Status.Conditions, metav1.Condition{
		Type: "Ready", Status: status, Reason: reason, Message: message, ObservedGeneration: e.Generation,
	})
}

func keyOf(e *Ensemble) string { return e.Namespace + "/" + e.Name }

func memberName(e *Ensemble, i int) string { return fmt.Sprintf("%s-%d", e.Name, i) }
