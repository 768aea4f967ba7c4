package owned

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/record"
)

func TestBind(t *testing.T) {
	o := &Owner{Namespace: "shop", Reference: metav1.OwnerReference{APIVersion: "v1", Kind: "App", Name: "web", UID: "uid", Controller: new(true), BlockOwnerDeletion: new(true)}}
	k, err := BuiltIn.Of(&corev1.ConfigMap{}, scheme.Scheme)
	require.NoError(t, err)
	sent := func(b Binding) client.Object {
		d := &Desired{Kind: k, Object: namedConfigMap("shop", "data"), Owner: o, Options: &Options{}, Binding: b}
		obj := d.Object.DeepCopyObject().(client.Object)
		d.Bind(obj)
		return obj
	}
	bindings := []Binding{ByReference, ByMark, ByRetention}
	for _, want := range bindings {
		d := &Desired{Kind: k, Object: namedConfigMap("shop", "data"), Owner: o, Options: &Options{}, Binding: want}
		for _, have := range bindings {
			require.Equal(t, want == have, d.IsBound(sent(have)), "want %v, have %v", want, have)
			require.Equal(t, want != have, d.ChangesBinding(sent(have)), "want %v, have %v", want, have)
		}
	}
	both := sent(ByMark)
	both.SetOwnerReferences([]metav1.OwnerReference{o.Reference})
	d := &Desired{Kind: k, Object: namedConfigMap("shop", "data"), Owner: o, Options: &Options{}, Binding: ByMark}
	require.False(t, d.IsBound(both), "the garbage collector would delete it")
	require.True(t, d.ChangesBinding(both))
}

func TestMayWriteMarked(t *testing.T) {
	named := func(name string, uid types.UID) *Owner {
		return &Owner{Namespace: "shop", Reference: metav1.OwnerReference{APIVersion: "apps.example.com/v1", Kind: "App", Name: name, UID: uid}}
	}
	const (
		allowed = iota
		waits
		former // the object is removed or adopted if its owner turns out to be gone
		refused
		retained // refused, because the object was kept when its owner was deleted
	)
	tests := map[string]struct {
		reason   string
		of       *Owner
		binding  Binding
		adopt    bool
		retained bool   // AdoptRetained is set
		set      string // the name of the set that wrote the object; empty if no set did
		deleting bool
		want     int
	}{
		"Ours":                 {reason: "It has our UID.", of: named("web", "new"), binding: ByMark, want: allowed},
		"OursDeleting":         {reason: "It is made anew when it is gone.", of: named("web", "new"), binding: ByMark, deleting: true, want: waits},
		"OursRetained":         {reason: "It is ours all the same.", of: named("web", "new"), binding: ByRetention, want: allowed},
		"FormerOfOurName":      {reason: "It goes with its owner, as by the garbage collector.", of: named("web", "old"), binding: ByMark, want: former},
		"FormerAdopt":          {reason: "It is taken over on request.", of: named("web", "old"), binding: ByMark, adopt: true, want: former},
		"FormerRetained":       {reason: "Nobody has asked for its data to be deleted or reused.", of: named("web", "old"), binding: ByRetention, want: retained},
		"FormerRetainedAdopt":  {reason: "It is taken over on request.", of: named("web", "old"), binding: ByRetention, adopt: true, want: former},
		"OfAnother":            {reason: "It belongs to another App.", of: named("api", "api"), binding: ByMark, want: refused},
		"OfAnotherRetained":    {reason: "Another App may have retained it, or may still use it.", of: named("api", "api"), binding: ByRetention, want: refused},
		"OfAnotherAdopt":       {reason: "That depends on whether the other App is gone.", of: named("api", "api"), binding: ByRetention, adopt: true, want: former},
		"OfAnotherKindAdopt":   {reason: "The operator may not be allowed to read other kinds.", of: &Owner{Namespace: "shop", Reference: metav1.OwnerReference{APIVersion: "v1", Kind: "Secret", Name: "web", UID: "s"}}, binding: ByMark, adopt: true, want: refused},
		"AdoptRetained":        {reason: "It was kept for that.", of: named("web", "old"), binding: ByRetention, retained: true, set: "data", want: former},
		"NotRetained":          {reason: "It is deleted with its owner, as without the option.", of: named("web", "old"), binding: ByMark, retained: true, set: "data", want: former},
		"RetainedByAnotherSet": {reason: "Another operator of the kind may have kept it.", of: named("web", "old"), binding: ByRetention, retained: true, set: "other", want: retained},
		"RetainedByNobody":     {reason: "No set has written it.", of: named("web", "old"), binding: ByRetention, retained: true, want: retained},
		"RetainedForAnother":   {reason: "The name decides whose data it was.", of: named("api", "old"), binding: ByRetention, retained: true, set: "data", want: refused},
		"RetainedElsewhere":    {reason: "So does the namespace.", of: &Owner{Namespace: "bank", Reference: named("web", "old").Reference}, binding: ByRetention, retained: true, set: "data", want: refused},
		"RetainedOfOtherKind":  {reason: "So does the kind.", of: &Owner{Namespace: "shop", Reference: metav1.OwnerReference{APIVersion: "v1", Kind: "Secret", Name: "web", UID: "s"}}, binding: ByRetention, retained: true, set: "data", want: refused},
		"SameUIDOfAnotherName": {reason: "No two objects have one UID: the mark is forged.", of: named("api", "new"), binding: ByMark, want: refused},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			o := named("web", "new")
			o.Set = "data"
			k, err := BuiltIn.Of(&corev1.ConfigMap{}, scheme.Scheme)
			require.NoError(t, err)
			live := marked(tc.of, "other", "data", tc.binding)
			if tc.deleting {
				live.DeletionTimestamp = new(metav1.Now())
			}
			if tc.set != "" {
				live.Annotations[record.Set] = tc.set
				live.Annotations[record.Applied] = "v1:applied:0123456789abcdef0123456789abcdef"
			}
			options := &Options{Adopt: tc.adopt, AdoptRetained: tc.retained}
			d := &Desired{Kind: k, Object: namedConfigMap("other", "data"), Owner: o, Options: options, Binding: ByMark}
			err = o.MayWrite(d, live)
			adopts := false
			got := allowed
			switch e := err.(type) { //nolint:errorlint // it is not wrapped
			case *WaitingError:
				got = waits
			case FormerError:
				got, adopts = former, e.Adopt
			case *OwnershipError:
				if got = refused; e.Retained {
					got = retained
				}
			}
			require.Equal(t, tc.want, got, "%s\n%v", tc.reason, err)
			require.Equal(t, got == former && (tc.adopt || tc.binding == ByRetention), adopts, "%s\n%v", tc.reason, err)
		})
	}
}

func TestWithoutOwnMetadata(t *testing.T) {
	o := &Owner{Namespace: "shop", Reference: metav1.OwnerReference{APIVersion: "v1", Kind: "App", Name: "web", UID: "uid"}}
	obj := marked(o, "other", "data", ByRetention)
	obj.Labels["app"], obj.Annotations["note"], obj.Annotations[record.Order] = "web", "stays", "7"
	before := obj.DeepCopy()
	got := withoutOwnMetadata(obj)
	require.Equal(t, map[string]string{"app": "web"}, got.GetLabels())
	require.Equal(t, map[string]string{"note": "stays"}, got.GetAnnotations())
	require.Empty(t, cmp.Diff(before, obj), "the object that was given stays as it is")
	plain := namedConfigMap("other", "data")
	require.Same(t, plain, withoutOwnMetadata(plain), "most objects are not copied")
}

func TestIsManagedBy(t *testing.T) {
	tests := map[string]struct {
		reason  string
		entries []metav1.ManagedFieldsEntry
		want    bool
	}{
		"Ours":    {reason: "We have written it.", entries: []metav1.ManagedFieldsEntry{{Manager: "kubectl"}, {Manager: "app"}}, want: true},
		"Others":  {reason: "A copy names who made it.", entries: []metav1.ManagedFieldsEntry{{Manager: "velero"}}},
		"Status":  {reason: "A write of the status did not make it.", entries: []metav1.ManagedFieldsEntry{{Manager: "app", Subresource: "status"}}},
		"Cleared": {reason: "The API server clears those of very large objects.", want: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, tc.want, IsManagedBy(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{ManagedFields: tc.entries}}, "app"), tc.reason)
		})
	}
}

// marked returns a ConfigMap whose mark (the annotations that name an owner) names o.
func marked(o *Owner, namespace, name string, b Binding) *corev1.ConfigMap {
	obj := namedConfigMap(namespace, name)
	obj.Labels = map[string]string{record.OwnerUID: string(o.Reference.UID)}
	obj.Annotations = o.MarkFor(b).Annotations(record.NameOf(schema.GroupKind{Kind: "ConfigMap"}, obj))
	return obj
}

func namedConfigMap(namespace, name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}
