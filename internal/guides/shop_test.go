//go:build !race

// An exploration runs one pass at a time, so the race detector finds nothing in it. With it, the exploration would take ten times as long.

package guides

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/opblocks/opblocks/reconcile/external"
	"github.com/opblocks/opblocks/reconcile/reconciletest"
	"github.com/opblocks/opblocks/reconcile/scheduledjobs"
	"github.com/opblocks/opblocks/schedule"
)

// Shop is the custom resource of all guides; testdata has its definition.
type Shop struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              ShopSpec   `json:"spec,omitzero"`
	Status            ShopStatus `json:"status,omitzero"`
}

type ShopSpec struct {
	Image    string             `json:"image,omitempty"`
	Replicas *int32             `json:"replicas,omitempty"`
	Storage  *resource.Quantity `json:"storage,omitempty"`

	// Token is the key of a Secret with the token of the account.
	Token corev1.SecretKeySelector `json:"token,omitzero"`

	// TLS is the name of a Secret with the certificate of the servers.
	TLS string `json:"tls,omitempty"`

	// Domain is the name by which the shop is found.
	Domain string `json:"domain,omitempty"`

	// Region is where the bucket is; empty for where the API puts it.
	Region string `json:"region,omitempty"`

	// Topics are the topics in the broker.
	Topics []Topic `json:"topics,omitempty"`

	// Backup is when a Job copies the data; nil for never.
	Backup *scheduledjobs.Spec `json:"backup,omitempty"`

	// Report is when a report is sent.
	Report        string           `json:"report,omitempty"`
	ReportOptions schedule.Options `json:"reportOptions,omitzero"`
}

type ShopStatus struct {
	ReadyReplicas int32                `json:"readyReplicas,omitempty"`
	Account       external.Record      `json:"account,omitzero"`
	Bucket        external.Record      `json:"bucket,omitzero"`
	Domain        external.Record      `json:"domain,omitzero"`
	Region        string               `json:"region,omitempty"`
	TopicRecord   external.Record      `json:"topicRecord,omitzero"`
	Topics        []TopicStatus        `json:"topics,omitempty"`
	Backup        scheduledjobs.Status `json:"backup,omitzero"`
	Report        schedule.Status      `json:"report,omitzero"`

	ObservedGeneration int64              `json:"observedGeneration,omitempty"`
	Conditions         []metav1.Condition `json:"conditions,omitempty"`
}

type ShopList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []Shop `json:"items"`
}

func (s *Shop) DeepCopyObject() runtime.Object {
	out := *s
	s.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	if s.Spec.Replicas != nil {
		out.Spec.Replicas = new(*s.Spec.Replicas)
	}
	if s.Spec.Storage != nil {
		out.Spec.Storage = new(s.Spec.Storage.DeepCopy())
	}
	s.Spec.Token.DeepCopyInto(&out.Spec.Token)
	if s.Spec.Backup != nil {
		out.Spec.Backup = &scheduledjobs.Spec{}
		s.Spec.Backup.DeepCopyInto(out.Spec.Backup)
	}
	s.Spec.ReportOptions.DeepCopyInto(&out.Spec.ReportOptions)
	out.Spec.Topics = slices.Clone(s.Spec.Topics)
	out.Status.Topics = slices.Clone(s.Status.Topics)
	s.Status.TopicRecord.DeepCopyInto(&out.Status.TopicRecord)
	s.Status.Account.DeepCopyInto(&out.Status.Account)
	s.Status.Bucket.DeepCopyInto(&out.Status.Bucket)
	s.Status.Domain.DeepCopyInto(&out.Status.Domain)
	s.Status.Backup.DeepCopyInto(&out.Status.Backup)
	s.Status.Report.DeepCopyInto(&out.Status.Report)
	out.Status.Conditions = slices.Clone(s.Status.Conditions)
	return &out
}

func (l *ShopList) DeepCopyObject() runtime.Object {
	out := &ShopList{TypeMeta: l.TypeMeta, ListMeta: *l.ListMeta.DeepCopy()}
	for i := range l.Items {
		out.Items = append(out.Items, *l.Items[i].DeepCopyObject().(*Shop))
	}
	return out
}

var scheme = newScheme()

func newScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(s); err != nil {
		panic(err)
	}
	version := schema.GroupVersion{Group: "shop.example.com", Version: "v1"}
	s.AddKnownTypes(version, &Shop{}, &ShopList{})
	metav1.AddToGroupVersion(s, version)
	return s
}

// shop returns the Shop of the scenarios, edited.
func shop(edit ...func(*ShopSpec)) *Shop {
	s := &Shop{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}, Spec: ShopSpec{Image: "shop:1", Replicas: new(int32(2))}}
	for _, e := range edit {
		e(&s.Spec)
	}
	return s
}

// shows returns a check that the shop is not ready, for this reason.
func shows(reason string) func(*reconciletest.Env) error {
	return reconciletest.Has(&Shop{
		ObjectMeta: shop().ObjectMeta,
		Status:     ShopStatus{Conditions: []metav1.Condition{{Type: "Ready", Status: metav1.ConditionFalse, Reason: reason}}},
	})
}

// change returns an action that changes the spec of the shop.
func change(edit func(*ShopSpec)) reconciletest.Action {
	return reconciletest.Change(shop(), func(s *Shop) { edit(&s.Spec) })
}

// explore runs an operator through every fault, with these actions of a user.
func explore(t *testing.T, setup func(ctrl.Manager) error, actions ...reconciletest.Action) {
	t.Helper()
	reconciletest.Explore(t, reconciletest.Scenario{
		Scheme: scheme, CRDs: []string{"testdata"},
		Start:   func(p *reconciletest.Process) error { return setup(p.Manager()) },
		Actions: actions,
	})
}
