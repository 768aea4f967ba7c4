package plan

import (
	"errors"
	"maps"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/opblocks/opblocks/internal/compare"
	"github.com/opblocks/opblocks/internal/owned"
	"github.com/opblocks/opblocks/internal/record"
)

// planned has a desired ConfigMap of an App, and a live ConfigMap as an apply has left it.
type planned struct {
	*State
	live *corev1.ConfigMap
}

func newPlanned(t *testing.T) *planned {
	t.Helper()
	obj := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}, Data: map[string]string{"colour": "red"}}
	k, err := owned.BuiltIn.Of(obj, scheme.Scheme)
	require.NoError(t, err)
	encoded, err := k.Comparer.AppendJSON(nil, obj)
	require.NoError(t, err)
	o := &owned.Owner{Namespace: "shop", Object: &corev1.ConfigMap{}, Reference: metav1.OwnerReference{
		APIVersion: "apps.example.com/v1", Kind: "App", Name: "web", UID: "owner", Controller: new(true), BlockOwnerDeletion: new(true),
	}}
	d := &owned.Desired{Kind: k, Object: obj, Full: obj, Sum: owned.SumOf(encoded), Owner: o, Options: &owned.Options{}}
	live := obj.DeepCopy()
	live.UID, live.OwnerReferences = "live", []metav1.OwnerReference{o.Reference}
	live.Annotations = map[string]string{record.Applied: lastApplied(d, record.ByApply)}
	return &planned{State: &State{Desired: d, Live: live, Known: map[Fact]bool{}}, live: live}
}

// marks gives the live object a mark (annotations that name an owner) in place of the owner reference.
func (p *planned) marks(owner types.UID, retained bool) {
	p.live.OwnerReferences = nil
	p.live.Labels = map[string]string{record.OwnerUID: string(owner)}
	of := p.Owner.ObjectName()
	maps.Copy(p.live.Annotations, record.Mark{Owner: of, UID: owner, Retained: retained}.Annotations(p.ObjectName()))
}

func TestDecide(t *testing.T) {
	rewritten := []compare.Difference{{Path: "data[colour]", Have: `"blue"`, Want: `"red"`}}
	tests := map[string]struct {
		reason string
		given  func(p *planned)
		want   Verb
		paths  string
		needs  []Fact
		says   string
	}{
		"AsDesired": {reason: "Nothing differs.", given: func(*planned) {}, want: DoNothing},
		"Drift": {
			reason: "Another writer has changed a field.", given: func(p *planned) { p.live.Data["colour"] = "blue" },
			want: DoApply, paths: "data[colour]", needs: []Fact{BuiltByOne, PaceOfWrites},
		},
		"Rewritten": {
			reason: "The API server answered our last write with the same difference.",
			given:  func(p *planned) { p.live.Data["colour"], p.Rewritten = "blue", rewritten }, want: DoNothing,
		},
		"RewrittenOtherwise": {
			reason: "The value is another one than in the answer to our last write.",
			given:  func(p *planned) { p.live.Data["colour"], p.Rewritten = "green", rewritten },
			want:   DoApply, paths: "data[colour]", needs: []Fact{BuiltByOne, PaceOfWrites},
		},
		"SentOtherwise": {
			reason: "The live object covers what is desired, and was written for something else.",
			given:  func(p *planned) { p.live.Annotations[record.Applied] = "v1:applied:0" },
			want:   DoApply, paths: "metadata", needs: []Fact{BuiltByOne, PaceOfWrites},
		},
		"AnotherSet": {
			reason: "Two steps build the same object.", given: func(p *planned) { p.live.Annotations[record.Set] = "other" },
			want: DoApply, paths: "metadata.annotations[opblocks.dev/set], by another step that builds the same object", needs: []Fact{BuiltByOne, PaceOfWrites},
		},
		"Delayed": {
			reason: "Another writer changes it back again and again.",
			given: func(p *planned) {
				p.live.Data["colour"], p.Paced, p.Delay = "blue", "data[colour]", owned.NewWaiting("", time.Second, "later")
			},
			want: DoReturn, says: "later",
		},
		"Held": {
			reason: "What it comes after is not ready, and the desired object has changed.",
			given: func(p *planned) {
				p.live.Annotations[record.Applied], p.Desired.Hold = "v1:applied:0", "Service shop/web"
			},
			want: DoReturn, says: "ConfigMap shop/web is not changed until Service shop/web is ready",
		},
		"HeldAndRepaired": {
			reason: "Drift is repaired all the same.", given: func(p *planned) { p.live.Data["colour"], p.Desired.Hold = "blue", "Service shop/web" },
			want: DoApply, paths: "data[colour]", needs: []Fact{BuiltByOne, PaceOfWrites},
		},
		"Foreign": {
			reason: "It has another controller.", given: func(p *planned) { p.live.OwnerReferences[0].UID, p.live.OwnerReferences[0].Name = "x", "x" },
			want: DoReturn, says: "belongs to App x",
		},
		"NoController": {reason: "It may be somebody's.", given: func(p *planned) { p.live.OwnerReferences = nil }, want: DoReturn, says: "is not controlled by anything"},
		"FormerController": {
			reason: "The garbage collector deletes it.", given: func(p *planned) { p.live.OwnerReferences[0].UID = "former" }, want: DoCollect, says: "waits for the garbage collector",
		},
		"FormerMark": {
			reason: "Nobody knows yet whether the former owner is gone.", given: func(p *planned) { p.marks("former", false) },
			want: DoRemove, needs: []Fact{FormerIsGone}, says: "belongs to a deleted App",
		},
		"FormerMarkGone": {
			reason: "The API server has no such owner.", given: func(p *planned) { p.marks("former", false); p.Known[FormerIsGone], p.Gone = true, true },
			want: DoRemove, says: "belongs to a deleted App",
		},
		"FormerMarkAlive": {
			reason: "The cache shows our owner, and the API server the other one.", given: func(p *planned) { p.marks("former", false); p.Known[FormerIsGone] = true },
			want: DoReturn, says: "it was deleted and created anew",
		},
		"RetainedIsAdopted": {
			reason: "The owner is gone, and the option allows it.",
			given: func(p *planned) {
				p.marks("former", true)
				p.Options.AdoptRetained, p.Binding, p.Known[FormerIsGone], p.Gone = true, owned.ByRetention, true, true
			},
			want: DoApply, paths: "metadata", needs: []Fact{OwnerIsAlive, BuiltByOne, PaceOfWrites},
		},
		"ToBeMarked": {
			reason: "The reference is taken off before anything else.", given: func(p *planned) { p.Binding = owned.ByMark },
			want: DoBind, paths: "metadata.ownerReferences", needs: []Fact{OwnerIsAlive, BuiltByOne, PaceOfWrites},
		},
		"Duplicate": {
			reason: "The API server would refuse every later apply.",
			given: func(p *planned) {
				service := &corev1.Service{ObjectMeta: p.live.ObjectMeta, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}, {Port: 80}}}}
				p.Kind, _ = owned.BuiltIn.Of(service, scheme.Scheme)
				p.Object, p.Full, p.State.Live = service, service, &corev1.Service{ObjectMeta: p.live.ObjectMeta}
				p.knowsPace()
			},
			want: DoReturn, says: "another item of the list has this key",
		},
		"Headless": {
			reason: "The API server keeps clusterIP: None although it is dropped, and says nothing.",
			given: func(p *planned) {
				service := &corev1.Service{ObjectMeta: p.live.ObjectMeta, Spec: corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone}}
				p.Kind, _ = owned.BuiltIn.Of(service, scheme.Scheme)
				p.Object, p.Full, p.State.Live = &corev1.Service{}, &corev1.Service{}, service
			},
			want: DoRefuse, needs: []Fact{BuiltByOne}, says: "the live Service is headless, which is immutable",
		},
		"LargerVolumes": {
			reason: "The claim template of a StatefulSet is immutable.", given: func(p *planned) { p.claims("1Gi", "2Gi"); p.knowsPace() },
			want: DoExpand, paths: "spec.volumeClaimTemplates[0].spec.resources.requests[storage]", needs: []Fact{BuiltByOne, PaceOfWrites},
		},
		"SmallerVolumes": {reason: "Volumes cannot shrink.", given: func(p *planned) { p.claims("2Gi", "1Gi"); p.knowsPace() }, want: DoReturn, says: "volumes cannot shrink"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			given := newPlanned(t)
			tc.given(given)
			before := given.State.Live.DeepCopyObject()
			got := Decide(Stages, given.State)
			require.Equal(t, tc.want, got.Verb, tc.reason)
			require.Equal(t, tc.paths, got.Paths, tc.reason)
			require.Equal(t, tc.needs, got.Needs, tc.reason)
			if tc.says != "" {
				require.ErrorContains(t, got.Err, tc.says, tc.reason)
			}
			require.Equal(t, before, given.State.Live, "it changes nothing")
		})
	}
}

func TestMissing(t *testing.T) {
	p := Plan{Verb: DoApply, Paths: "data", Needs: []Fact{OwnerIsAlive, PaceOfWrites}}
	s := &State{Known: map[Fact]bool{}}
	for _, want := range p.Needs {
		need, missing := s.Missing(p)
		require.True(t, missing)
		require.Equal(t, want, need)
		s.Known[need], s.Paced = true, "data"
	}
	_, missing := s.Missing(p)
	require.False(t, missing)
	s.Paced = "spec"
	need, _ := s.Missing(p)
	require.Equal(t, PaceOfWrites, need, "it was known for other fields")
	_, missing = s.Missing(Plan{Verb: DoReturn, Err: errors.New("held"), Needs: p.Needs})
	require.False(t, missing, "a plan that only returns an error asks for nothing")
}

// knowsPace adds two facts: no other step builds the object, and nothing delays the planned write.
func (p *planned) knowsPace() {
	p.Known[BuiltByOne], p.Known[PaceOfWrites] = true, true
	p.Paced = Decide(Stages, p.State).Paths
}

// claims replaces the live and the desired object by StatefulSets whose claim templates request this storage.
func (p *planned) claims(live, want string) {
	set := func(meta metav1.ObjectMeta, size string) *appsv1.StatefulSet {
		return &appsv1.StatefulSet{ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{VolumeClaimTemplates: claimTemplates("data", size)}}
	}
	is, desired := set(p.live.ObjectMeta, live), set(metav1.ObjectMeta{Namespace: "shop", Name: "web"}, want)
	p.Kind, _ = owned.BuiltIn.Of(desired, scheme.Scheme)
	p.Object, p.Full, p.State.Live, p.Options.ExpandVolumes = desired, desired, is, true
}

// claimTemplates returns claim templates of these names and sizes.
func claimTemplates(namesAndSizes ...string) (all []corev1.PersistentVolumeClaim) {
	for i := 0; i < len(namesAndSizes); i += 2 {
		claim := corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: namesAndSizes[i]}}
		if size := namesAndSizes[i+1]; size != "" {
			claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}
		}
		all = append(all, claim)
	}
	return all
}
