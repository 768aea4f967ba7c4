// Package roundtrip converts random objects to another version of their kind and back, and finds what is lost.
package roundtrip

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"sigs.k8s.io/randfill"
	"sigs.k8s.io/yaml"

	"github.com/opblocks/opblocks/internal/diff"
)

// runs is how many random objects are converted.
const runs = 300

// Way converts objects from one version to another and back.
type Way struct {
	Start, Middle func() runtime.Object // return a new, empty object
	There, Back   func(from, to runtime.Object) error
	Fill          []any // functions for package randfill
}

// Check converts random objects. If one of them loses a field, the error names the field, and contains the smallest object that loses it.
func (w *Way) Check() error {
	funcs := append(metafuzzer.Funcs(serializer.NewCodecFactory(runtime.NewScheme())), w.Fill...)
	for seed := range int64(runs) {
		object, err := w.random(randfill.NewWithSeed(seed).NilChance(0.3).NumElements(1, 2).Funcs(funcs...))
		if err != nil {
			return err
		}
		if f := w.convert(object); f != nil {
			return w.shrink(object, f)
		}
	}
	return nil
}

// random returns a random object as a JSON value.
func (w *Way) random(filler *randfill.Filler) (map[string]any, error) {
	obj := w.Start()
	filler.Fill(obj)
	tree, err := treeOf(obj)
	if err != nil {
		return nil, fmt.Errorf("a random object cannot be encoded: %w: give RoundTrip a function that fills the field", err)
	}
	return tree, nil
}

// fault is a mistake in a conversion.
type fault struct {
	what string // the field, or the step that failed: two objects with the same value have the same fault
	text string
}

// convert converts an object and back. It returns the fault of the conversion, or nil.
func (w *Way) convert(object map[string]any) *fault {
	start, middle, end := w.Start(), w.Middle(), w.Start()
	if err := decode(object, start); err != nil {
		return nil // without this field it is not an object of the kind
	}
	before, err := treeOf(start)
	if err != nil {
		return nil
	}
	if f := step("the conversion", w.There, start, middle); f != nil {
		return f
	}
	if f := step("the conversion back", w.Back, middle, end); f != nil {
		return f
	}
	after, err := treeOf(end)
	if err != nil {
		return &fault{"encode", fmt.Sprintf("the result cannot be encoded: %v", err)}
	}
	for _, d := range diff.Values(before, after, diff.Options{ExpandMaps: true}) {
		return &fault{d.Path.String(), d.Path.String() + lost(d)}
	}
	return nil
}

// lost returns how a value has changed, as text.
func lost(d diff.Difference) string {
	text := func(v any) string { encoded, _ := json.Marshal(v); return string(encoded) }
	if _, absent := d.After.(diff.Absent); absent {
		return " is lost: it was " + text(d.Before)
	}
	if _, absent := d.Before.(diff.Absent); absent {
		return " is added: it is " + text(d.After)
	}
	return " is changed: it was " + text(d.Before) + ", and is " + text(d.After)
}

// step converts an object. It returns a fault if the conversion fails, or changes the object that it reads.
func step(name string, convert func(from, to runtime.Object) error, from, to runtime.Object) (f *fault) {
	before, err := treeOf(from)
	if err != nil {
		return nil
	}
	defer func() {
		if r := recover(); r != nil {
			f = &fault{name, fmt.Sprintf("%s panics: %v", name, r)}
		}
	}()
	if err := convert(from, to); err != nil {
		return &fault{name, fmt.Sprintf("%s fails: %v", name, err)}
	}
	if after, err := treeOf(from); err != nil || len(diff.Values(before, after, diff.Options{})) > 0 {
		return &fault{"source", name + " changes the object that it reads: copy what both share"}
	}
	return nil
}

// shrink returns an error about the fault, with the smallest object that has it.
func (w *Way) shrink(object map[string]any, f *fault) error {
	has := func() bool {
		found := w.convert(object)
		if found == nil || found.what != f.what {
			return false
		}
		f = found
		return true
	}
	reduce(object, has)
	has() // updates the text of f for the smallest object
	text, err := yaml.Marshal(object)
	if err != nil {
		return fmt.Errorf("%s", f.text)
	}
	return fmt.Errorf("%s; the smallest such object:\n%s", f.text, text)
}

// reduce makes a tree as small as possible. It removes or simplifies values, and keeps each change only if has still returns true.
func reduce(tree map[string]any, has func() bool) {
	for _, key := range slices.Sorted(maps.Keys(tree)) {
		was := tree[key]
		if delete(tree, key); has() {
			continue
		}
		tree[key] = was
		switch value := was.(type) {
		case map[string]any:
			reduce(value, has)
		case []any:
			reduceList(tree, key, value, has)
		default:
			simplify(was, func(v any) { tree[key] = v }, has)
		}
	}
}

func reduceList(tree map[string]any, key string, list []any, has func() bool) {
	for i := 0; i < len(list); {
		shorter := slices.Delete(slices.Clone(list), i, i+1)
		if tree[key] = shorter; has() {
			list = shorter
			continue
		}
		tree[key] = list
		if item, ok := list[i].(map[string]any); ok {
			reduce(item, has)
		} else {
			simplify(list[i], func(v any) { list[i] = v }, has)
		}
		i++
	}
}

// simplify replaces a scalar by a simple one of the same type. If has then returns false, it restores the scalar.
func simplify(was any, set func(any), has func() bool) {
	var simple any
	switch was.(type) {
	case string:
		simple = "x"
	case int64, float64:
		simple = int64(1)
	default:
		return
	}
	if set(simple); !has() {
		set(was)
	}
}

func decode(tree map[string]any, obj runtime.Object) error {
	text, err := json.Marshal(tree)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, obj)
}

// treeOf returns an object as a JSON value without empty lists and maps, since an absent list means the same as an empty one.
func treeOf(obj runtime.Object) (map[string]any, error) {
	tree, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil, err
	}
	dropEmpty(tree)
	return tree, nil
}

func dropEmpty(value any) (empty bool) {
	switch value := value.(type) {
	case nil:
		return true
	case map[string]any:
		for key, v := range value {
			if dropEmpty(v) {
				delete(value, key)
			}
		}
		return len(value) == 0
	case []any:
		for _, v := range value {
			dropEmpty(v)
		}
		return len(value) == 0
	}
	return false
}
