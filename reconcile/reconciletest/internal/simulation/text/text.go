// Package text formats numbers and objects for the messages of the simulation: see [Plural] and [Describe].
package text

import (
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/state"
)

// Plural returns the number and the noun, with an s unless the number is 1.
func Plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Shorten returns the text, cut off after the given number of characters, with "…" if something was cut off.
func Shorten(text string, to int) string {
	if runes := []rune(text); len(runes) > to {
		return string(runes[:to]) + "…"
	}
	return text
}

// Describe returns an object's kind, namespace and name. If the object does not name its kind, Describe returns the name of its Go type.
func Describe(obj client.Object) string {
	kind := reflect.TypeOf(obj).Elem().Name()
	if gvk := obj.GetObjectKind().GroupVersionKind(); gvk.Kind != "" {
		kind = gvk.Kind
	}
	return kind + " " + state.NameOf(client.ObjectKeyFromObject(obj))
}

// ObjectOf returns " of" and the description of an object. If obj has no metadata of an object, it returns "".
func ObjectOf(obj runtime.Object) string {
	if named, ok := obj.(client.Object); ok {
		return " of " + Describe(named)
	}
	return ""
}
