package reconciletest_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/conversion"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/opblocks/opblocks/reconcile/reconciletest"
)

// Store is a custom resource with two versions, in its storage version v1; testdata/versions has its definition.
type Store struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              StoreSpec   `json:"spec,omitzero"`
	Status            StoreStatus `json:"status,omitzero"`
}

type StoreSpec struct {
	Shelves int    `json:"shelves,omitempty"`
	Theme   string `json:"theme,omitempty"`
}

type StoreStatus struct {
	Phase string `json:"phase,omitempty"`
}

// OldStore is a Store in version v1alpha1, which has no theme.
type OldStore struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              OldStoreSpec `json:"spec,omitzero"`
	Status            StoreStatus  `json:"status,omitzero"`
}

type OldStoreSpec struct {
	Size int `json:"size,omitempty"`
}

type StoreList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []Store `json:"items"`
}

type OldStoreList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []OldStore `json:"items"`
}

func (s *Store) DeepCopyObject() runtime.Object {
	made := *s
	s.ObjectMeta.DeepCopyInto(&made.ObjectMeta)
	return &made
}

func (s *OldStore) DeepCopyObject() runtime.Object {
	made := *s
	s.ObjectMeta.DeepCopyInto(&made.ObjectMeta)
	return &made
}

func (l *StoreList) DeepCopyObject() runtime.Object {
	made := &StoreList{TypeMeta: l.TypeMeta, ListMeta: *l.ListMeta.DeepCopy()}
	for i := range l.Items {
		made.Items = append(made.Items, *l.Items[i].DeepCopyObject().(*Store))
	}
	return made
}

func (l *OldStoreList) DeepCopyObject() runtime.Object {
	made := &OldStoreList{TypeMeta: l.TypeMeta, ListMeta: *l.ListMeta.DeepCopy()}
	for i := range l.Items {
		made.Items = append(made.Items, *l.Items[i].DeepCopyObject().(*OldStore))
	}
	return made
}

// Hub makes version v1 the hub.
func (*Store) Hub() {}

// themeKey is the annotation that has the theme of a Store in version v1alpha1.
const themeKey = "example.com/theme"

// ConvertTo converts the store to version v1. It takes the theme out of the annotation.
func (s *OldStore) ConvertTo(hub conversion.Hub) error {
	to := hub.(*Store)
	to.ObjectMeta, to.Status = *s.ObjectMeta.DeepCopy(), s.Status
	to.Spec = StoreSpec{Shelves: s.Spec.Size, Theme: s.Annotations[themeKey]}
	delete(to.Annotations, themeKey)
	return nil
}

// ConvertFrom converts a store of version v1. It keeps the theme in an annotation.
func (s *OldStore) ConvertFrom(hub conversion.Hub) error {
	from := hub.(*Store)
	s.ObjectMeta, s.Status = *from.ObjectMeta.DeepCopy(), from.Status
	s.Spec.Size = from.Spec.Shelves
	if from.Spec.Theme != "" {
		metav1.SetMetaDataAnnotation(&s.ObjectMeta, themeKey, from.Spec.Theme)
	}
	return nil
}

var (
	storeVersion    = schema.GroupVersion{Group: "example.com", Version: "v1"}
	oldStoreVersion = schema.GroupVersion{Group: "example.com", Version: "v1alpha1"}
)

// storeScheme returns a scheme with both versions. A test may give other types for v1alpha1 than OldStore, with another conversion.
func storeScheme(old, oldList runtime.Object) *runtime.Scheme {
	s := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(s); err != nil {
		panic(err)
	}
	s.AddKnownTypes(storeVersion, &Store{}, &StoreList{})
	s.AddKnownTypeWithName(oldStoreVersion.WithKind("Store"), old)
	s.AddKnownTypeWithName(oldStoreVersion.WithKind("StoreList"), oldList)
	metav1.AddToGroupVersion(s, storeVersion)
	metav1.AddToGroupVersion(s, oldStoreVersion)
	return s
}

func store(edit ...func(*Store)) *Store {
	s := &Store{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}}
	for _, e := range edit {
		e(s)
	}
	return s
}

func oldStore(size int) *OldStore {
	return &OldStore{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}, Spec: OldStoreSpec{Size: size}}
}

// storeOperator reconciles stores in version v1, and serves their webhooks.
type storeOperator struct {
	scheme   *runtime.Scheme                // nil: the scheme with OldStore
	defaults func(s *Store)                 // the defaulting webhook; nil: there is none
	refuses  func(before, now *Store) error // the validating webhook of updates; nil: there is none
	pass     func(ctx context.Context, p *reconciletest.Process, s *Store) error
}

// Default implements admission.Defaulter.
func (o storeOperator) Default(_ context.Context, s *Store) error {
	o.defaults(s)
	return nil
}

// ValidateCreate implements admission.Validator.
func (o storeOperator) ValidateCreate(context.Context, *Store) (admission.Warnings, error) {
	return nil, nil
}

// ValidateUpdate implements admission.Validator.
func (o storeOperator) ValidateUpdate(_ context.Context, before, now *Store) (admission.Warnings, error) {
	return nil, o.refuses(before, now)
}

// ValidateDelete implements admission.Validator.
func (o storeOperator) ValidateDelete(context.Context, *Store) (admission.Warnings, error) {
	return nil, nil
}

// setUp does what main does in a real operator.
func (o storeOperator) setUp(p *reconciletest.Process) error {
	mgr := p.Manager()
	webhooks := ctrl.NewWebhookManagedBy(mgr, &Store{})
	if o.defaults != nil {
		webhooks = webhooks.WithDefaulter(o)
	}
	if o.refuses != nil {
		webhooks = webhooks.WithValidator(o)
	}
	if err := webhooks.Complete(); err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(mgr).Named("store").For(&Store{}).Owns(&corev1.ConfigMap{}).Complete(
		ctrlreconcile.Func(func(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
			s := &Store{}
			if err := mgr.GetClient().Get(ctx, req.NamespacedName, s); err != nil {
				return ctrl.Result{}, client.IgnoreNotFound(err)
			}
			return ctrl.Result{}, o.pass(ctx, p, s)
		}))
}

// scenario returns the scenario of the operator, with the webhooks that it has.
func (o storeOperator) scenario(actions ...reconciletest.Action) reconciletest.Scenario {
	if o.scheme == nil {
		o.scheme = storeScheme(&OldStore{}, &OldStoreList{})
	}
	s := reconciletest.Scenario{Scheme: o.scheme, CRDs: []string{"testdata/versions"}, Start: o.setUp, Actions: actions}
	if o.defaults != nil && o.refuses != nil {
		s.Webhooks = []string{"testdata/webhooks/manifests.yaml"}
	}
	return s
}

// furnish is a pass of a sound operator: it writes what the store wants to a ConfigMap, and then the status.
func furnish(ctx context.Context, p *reconciletest.Process, s *Store) error {
	c, room := p.Client(), config(s.Name)
	if _, err := controllerutil.CreateOrUpdate(ctx, c, room, func() error {
		room.Data = map[string]string{"shelves": fmt.Sprint(s.Spec.Shelves), "theme": s.Spec.Theme}
		return controllerutil.SetControllerReference(s, room, c.Scheme())
	}); err != nil {
		return err
	}
	return openStore(ctx, c, s, "Open")
}

// openStore sets the phase in the status.
func openStore(ctx context.Context, c client.Client, s *Store, phase string) error {
	if s.Status.Phase == phase {
		return nil
	}
	s.Status.Phase = phase
	return c.Status().Update(ctx, s)
}
