package operatortest

import (
	"context"
	"fmt"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// touched is the annotation that triggers a pass.
const touched = "example.com/touched"

// Pass triggers passes over objects, by an annotation, and waits until one that has begun since has ended: then the operator
// has done all that there was to do.
func (o *Operator) Pass(t *testing.T, c client.Client, objects ...client.Object) {
	t.Helper()
	for range 2 { // when the second begins, the first has ended
		before := map[client.ObjectKey]int{}
		for _, obj := range objects {
			before[client.ObjectKeyFromObject(obj)] = o.Passes(obj)
			require.NoError(t, c.Patch(t.Context(), obj, touch()))
		}
		o.await(t, before)
	}
}

// PassAfter calls act and waits until a pass over the object has begun since.
func (o *Operator) PassAfter(t *testing.T, obj client.Object, act func()) {
	t.Helper()
	before := map[client.ObjectKey]int{client.ObjectKeyFromObject(obj): o.Passes(obj)}
	act()
	o.await(t, before)
}

// Touch is an edit that no operator reacts to, except by a pass.
func Touch(obj client.Object) {
	annotations := obj.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[touched] = time.Now().String()
	obj.SetAnnotations(annotations)
}

// touch returns the patch that Touch makes, for which the object need not be read.
func touch() client.Patch {
	return client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata": {"annotations": {%q: %q}}}`, touched, time.Now().String()))
}

// Passes returns the number of passes over an object that have begun.
func (o *Operator) Passes(obj client.Object) int {
	o.passes.mu.Lock()
	defer o.passes.mu.Unlock()
	return o.passes.begun[client.ObjectKeyFromObject(obj)]
}

func (o *Operator) await(t *testing.T, before map[client.ObjectKey]int) {
	t.Helper()
	Eventually(t, "a pass over each", func(c *assert.CollectT) {
		o.passes.mu.Lock()
		defer o.passes.mu.Unlock()
		for key, begun := range before {
			assert.Greater(c, o.passes.begun[key], begun)
		}
	})
}

// passes counts the passes that have begun. Each reads its object once.
type passes struct {
	mu    sync.Mutex
	begun map[client.ObjectKey]int
}

// count returns a function that creates a client which counts passes over objects of the type of primary.
func (p *passes) count(primary client.Object, next client.NewClientFunc) client.NewClientFunc {
	p.begun = map[client.ObjectKey]int{}
	if next == nil {
		next = client.New
	}
	return func(config *rest.Config, options client.Options) (client.Client, error) {
		c, err := next(config, options)
		return &passesClient{c, p, reflect.TypeOf(primary)}, err
	}
}

type passesClient struct {
	client.Client
	*passes
	primary reflect.Type
}

func (c *passesClient) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if reflect.TypeOf(obj) == c.primary {
		c.mu.Lock()
		c.begun[key]++
		c.mu.Unlock()
	}
	return c.Client.Get(ctx, key, obj, opts...)
}
