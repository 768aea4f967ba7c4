package ownedresources

import (
	"errors"
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/opblocks/opblocks/internal/compare"
	"github.com/opblocks/opblocks/internal/record"
)

// planned is a desired ConfigMap of an App, and a live one that was applied.
type planned struct {
	*state
	live *corev1.ConfigMap
}

func newPlanned(t *testing.T) *planned {
	t.Helper()
	obj := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}, Data: map[string]string{"colour": "red"}}
	k, err := builtInKinds.of(obj, scheme.Scheme)
	require.NoError(t, err)
	encoded, err := k.comparer.AppendJSON(nil, obj)
	require.NoError(t, err)
	o := &owner{namespace: "shop", object: &corev1.ConfigMap{}, reference: metav1.OwnerReference{
		APIVersion: "apps.example.com/v1", Kind: "App", Name: "web", UID: "owner", Controller: new(true), BlockOwnerDeletion: new(true),
	}}
	d := &desired{kind: k, object: obj, full: obj, sum: sumOf(encoded), owner: o, options: &childOptions{}}
	live := obj.DeepCopy()
	live.UID, live.OwnerReferences = "live", []metav1.OwnerReference{o.reference}
	live.Annotations = map[string]string{record.Applied: d.lastApplied(record.ByApply)}
	return &planned{state: &state{desired: d, live: live, known: map[fact]bool{}}, live: live}
}

// marks gives the live object the mark of an owner in place of the owner reference.
func (p *planned) marks(owner types.UID, retained bool) {
	p.live.OwnerReferences = nil
	p.live.Labels = map[string]string{record.OwnerUID: string(owner)}
	of := p.owner.objectName()
	maps.Copy(p.live.Annotations, record.Mark{Owner: of, UID: owner, Retained: retained}.Annotations(p.objectName()))
}

func TestDecide(t *testing.T) {
	rewritten := []compare.Difference{{Path: "data[colour]", Have: `"blue"`, Want: `"red"`}}
	tests := map[string]struct {
		reason string
		given  func(p *planned)
		want   verb
		paths  string
		needs  []fact
		says   string
	}{
		"AsDesired": {reason: "Nothing differs.", given: func(*planned) {}, want: doNothing},
		"Drift": {
			reason: "Another writer has changed a field.", given: func(p *planned) { p.live.Data["colour"] = "blue" },
			want: doApply, paths: "data[colour]", needs: []fact{paceOfWrites},
		},
		"Rewritten": {
			reason: "The API server answered our last write with the same difference.",
			given:  func(p *planned) { p.live.Data["colour"], p.rewritten = "blue", rewritten }, want: doNothing,
		},
		"RewrittenOtherwise": {
			reason: "The value is another one than in the answer to our last write.",
			given:  func(p *planned) { p.live.Data["colour"], p.rewritten = "green", rewritten },
			want:   doApply, paths: "data[colour]", needs: []fact{paceOfWrites},
		},
		"SentOtherwise": {
			reason: "The live object covers what is desired, and was written for something else.",
			given:  func(p *planned) { p.live.Annotations[record.Applied] = "v1:applied:0" },
			want:   doApply, paths: "metadata", needs: []fact{paceOfWrites},
		},
		"AnotherSet": {
			reason: "Two steps build the same object.", given: func(p *planned) { p.live.Annotations[record.Set] = "other" },
			want: doApply, paths: "metadata.annotations[opblocks.dev/set], by another step that builds the same object", needs: []fact{paceOfWrites},
		},
		"Delayed": {
			reason: "Another writer changes it back again and again.",
			given: func(p *planned) {
				p.live.Data["colour"], p.paced, p.delay = "blue", "data[colour]", &WaitingError{message: "later", after: time.Second}
			},
			want: doReturn, says: "later",
		},
		"Held": {
			reason: "What it comes after is not ready, and the desired object has changed.",
			given: func(p *planned) {
				p.live.Annotations[record.Applied], p.desired.hold = "v1:applied:0", "Service shop/web"
			},
			want: doReturn, says: "ConfigMap shop/web is not changed until Service shop/web is ready",
		},
		"HeldAndRepaired": {
			reason: "Drift is repaired all the same.", given: func(p *planned) { p.live.Data["colour"], p.desired.hold = "blue", "Service shop/web" },
			want: doApply, paths: "data[colour]", needs: []fact{paceOfWrites},
		},
		"Foreign": {
			reason: "It has another controller.", given: func(p *planned) { p.live.OwnerReferences[0].UID, p.live.OwnerReferences[0].Name = "x", "x" },
			want: doReturn, says: "belongs to App x",
		},
		"NoController": {reason: "It may be somebody's.", given: func(p *planned) { p.live.OwnerReferences = nil }, want: doReturn, says: "is not controlled by anything"},
		"FormerController": {
			reason: "The garbage collector deletes it.", given: func(p *planned) { p.live.OwnerReferences[0].UID = "former" }, want: doCollect, says: "waits for the garbage collector",
		},
		"FormerMark": {
			reason: "Nobody knows yet whether the former owner is gone.", given: func(p *planned) { p.marks("former", false) },
			want: doRemove, needs: []fact{formerIsGone}, says: "belongs to a deleted App",
		},
		"FormerMarkGone": {
			reason: "The API server has no such owner.", given: func(p *planned) { p.marks("former", false); p.known[formerIsGone], p.gone = true, true },
			want: doRemove, says: "belongs to a deleted App",
		},
		"FormerMarkAlive": {
			reason: "The cache shows our owner, and the API server the other one.", given: func(p *planned) { p.marks("former", false); p.known[formerIsGone] = true },
			want: doReturn, says: "it was deleted and created anew",
		},
		"RetainedIsAdopted": {
			reason: "The owner is gone, and the option allows it.",
			given: func(p *planned) {
				p.marks("former", true)
				p.options.adoptRetained, p.binding, p.known[formerIsGone], p.gone = true, byRetention, true, true
			},
			want: doApply, paths: "metadata", needs: []fact{ownerIsAlive, paceOfWrites},
		},
		"ToBeMarked": {
			reason: "The reference is taken off before anything else.", given: func(p *planned) { p.binding = byMark },
			want: doBind, paths: "metadata.ownerReferences", needs: []fact{ownerIsAlive, paceOfWrites},
		},
		"Duplicate": {
			reason: "The API server would refuse every later apply.",
			given: func(p *planned) {
				service := &corev1.Service{ObjectMeta: p.live.ObjectMeta, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}, {Port: 80}}}}
				p.kind, _ = builtInKinds.of(service, scheme.Scheme)
				p.object, p.full, p.state.live = service, service, &corev1.Service{ObjectMeta: p.live.ObjectMeta}
				p.knowsPace()
			},
			want: doReturn, says: "another item of the list has this key",
		},
		"LargerVolumes": {
			reason: "The claim template of a StatefulSet is immutable.", given: func(p *planned) { p.claims("1Gi", "2Gi"); p.knowsPace() },
			want: doExpand, paths: "spec.volumeClaimTemplates[0].spec.resources.requests[storage]", needs: []fact{paceOfWrites},
		},
		"SmallerVolumes": {reason: "Volumes cannot shrink.", given: func(p *planned) { p.claims("2Gi", "1Gi"); p.knowsPace() }, want: doReturn, says: "volumes cannot shrink"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			given := newPlanned(t)
			tc.given(given)
			before := given.state.live.DeepCopyObject()
			got := decide(stages, given.state)
			require.Equal(t, tc.want, got.verb, tc.reason)
			require.Equal(t, tc.paths, got.paths, tc.reason)
			require.Equal(t, tc.needs, got.needs, tc.reason)
			if tc.says != "" {
				require.ErrorContains(t, got.err, tc.says, tc.reason)
			}
			require.Equal(t, before, given.state.live, "it changes nothing")
		})
	}
}

// knowsPace adds the fact that nothing delays the write that is planned without it.
func (p *planned) knowsPace() { p.paced, p.known[paceOfWrites] = decide(stages, p.state).paths, true }

// claims makes a StatefulSet of the objects whose claim template requests this storage.
func (p *planned) claims(live, want string) {
	set := func(meta metav1.ObjectMeta, size string) *appsv1.StatefulSet {
		return &appsv1.StatefulSet{ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{VolumeClaimTemplates: claimTemplates("data", size)}}
	}
	is, desired := set(p.live.ObjectMeta, live), set(metav1.ObjectMeta{Namespace: "shop", Name: "web"}, want)
	p.kind, _ = builtInKinds.of(desired, scheme.Scheme)
	p.object, p.full, p.state.live, p.options.expandVolumes = desired, desired, is, true
}

func TestMissing(t *testing.T) {
	p := plan{verb: doApply, paths: "data", needs: []fact{ownerIsAlive, paceOfWrites}}
	s := &state{known: map[fact]bool{}}
	for _, want := range p.needs {
		need, missing := s.missing(p)
		require.True(t, missing)
		require.Equal(t, want, need)
		s.known[need], s.paced = true, "data"
	}
	_, missing := s.missing(p)
	require.False(t, missing)
	s.paced = "spec"
	need, _ := s.missing(p)
	require.Equal(t, paceOfWrites, need, "it was known for other fields")
	_, missing = s.missing(plan{verb: doReturn, err: errors.New("held"), needs: p.needs})
	require.False(t, missing, "a plan that only returns an error asks for nothing")
}
