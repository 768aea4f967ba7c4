package roundtrip

import (
	"errors"
	"maps"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/randfill"
)

type stable struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              stableSpec `json:"spec,omitzero"`
}

type stableSpec struct {
	Replicas int32             `json:"replicas,omitempty"`
	Labels   map[string]string `json:"labels,omitempty"`
	Ports    []port            `json:"ports,omitempty"`
	Policy   string            `json:"policy,omitempty"`
}

type port struct {
	Name   string `json:"name,omitempty"`
	Number int32  `json:"number,omitempty"`
}

type alpha struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              alphaSpec `json:"spec,omitzero"`
}

type alphaSpec struct {
	Size   int32             `json:"size,omitempty"`
	Labels map[string]string `json:"labels,omitempty"`
	Ports  []port            `json:"ports,omitempty"`
	Policy string            `json:"policy,omitempty"`
}

func (s *stable) DeepCopyObject() runtime.Object { return new(*s) }
func (a *alpha) DeepCopyObject() runtime.Object  { return new(*a) }

func up(a *alpha, s *stable) error {
	a.ObjectMeta.DeepCopyInto(&s.ObjectMeta)
	s.Spec = stableSpec{Replicas: a.Spec.Size, Labels: maps.Clone(a.Spec.Labels), Ports: a.Spec.Ports, Policy: a.Spec.Policy}
	return nil
}

func down(s *stable, a *alpha) error {
	s.ObjectMeta.DeepCopyInto(&a.ObjectMeta)
	a.Spec = alphaSpec{Size: s.Spec.Replicas, Labels: maps.Clone(s.Spec.Labels), Ports: s.Spec.Ports, Policy: s.Spec.Policy}
	return nil
}

func TestCheck(t *testing.T) {
	tests := map[string]struct {
		reason string
		up     func(a *alpha, s *stable) error
		down   func(s *stable, a *alpha) error
		fill   []any
		want   string // the whole error; empty for none
	}{
		"Right": {"nothing is lost", up, down, nil, ""},
		"Lost": {
			"a field is forgotten", func(a *alpha, s *stable) error { err := up(a, s); s.Spec.Labels = nil; return err }, down, nil,
			" is lost: it was \"x\"; the smallest such object:\nspec:\n  labels:\n",
		},
		"InAList": {
			"so is a field of an item", up, func(s *stable, a *alpha) error {
				err := down(s, a)
				a.Spec.Ports = nil
				for _, p := range s.Spec.Ports {
					a.Spec.Ports = append(a.Spec.Ports, port{Name: p.Name})
				}
				return err
			}, nil,
			"spec.ports[0].number is lost: it was 1; the smallest such object:\nspec:\n  ports:\n  - number: 1\n",
		},
		"Changed": {
			"a value becomes another one", up, func(s *stable, a *alpha) error { err := down(s, a); a.Spec.Size++; return err }, nil,
			"spec.size is added: it is 1; the smallest such object:\n{}\n",
		},
		"Fails": {
			"the API server could not serve the object", func(a *alpha, s *stable) error {
				if a.Spec.Policy != "" {
					return errors.New("unknown policy")
				}
				return up(a, s)
			}, down, nil,
			"the conversion fails: unknown policy; the smallest such object:\nspec:\n  policy: x\n",
		},
		"OnlyValid": {
			"random texts are not policies", func(a *alpha, s *stable) error {
				if a.Spec.Policy != "" && a.Spec.Policy != "Retain" {
					return errors.New("unknown policy")
				}
				return up(a, s)
			}, down, []any{func(s *alphaSpec, c randfill.Continue) { c.FillNoCustom(s); s.Policy = "Retain" }},
			"",
		},
		"Panics": {
			"the webhook would answer with an error", func(a *alpha, s *stable) error { s.Spec.Ports = a.Spec.Ports[:1]; return up(a, s) }, down, nil,
			"the conversion panics: runtime error: slice bounds out of range [:1] with capacity 0; the smallest such object:\n",
		},
		"ChangesItsSource": {
			"the cache has this object", up, func(s *stable, a *alpha) error { s.Spec.Policy = "old"; return down(s, a) }, nil,
			"the conversion back changes the object that it reads: copy what both share",
		},
		"Leaves": {
			"an annotation of the conversion stays", up, func(s *stable, a *alpha) error {
				err := down(s, a)
				metav1.SetMetaDataAnnotation(&a.ObjectMeta, "example.com/stable", "x")
				return err
			}, nil,
			"metadata.annotations.example.com/stable is added: it is \"x\"; the smallest such object:\n",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			way := Way{
				Start: func() runtime.Object { return &alpha{} }, Middle: func() runtime.Object { return &stable{} }, Fill: tc.fill,
				There: func(from, to runtime.Object) error { return tc.up(from.(*alpha), to.(*stable)) },
				Back:  func(from, to runtime.Object) error { return tc.down(from.(*stable), to.(*alpha)) },
			}
			err := way.Check()
			if tc.want == "" {
				require.NoError(t, err, tc.reason)
				return
			}
			require.ErrorContains(t, err, tc.want, tc.reason)
		})
	}
}
