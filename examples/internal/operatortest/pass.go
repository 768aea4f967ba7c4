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

// Pass triggers passes over objects, by an annotation, and waits until one has ended that read all earlier writes: then the operator has
// done all that there was to do. It triggers three passes in turn. The first may read an object that is older than what the pass before it
// wrote, and do nothing. The second reads that write, and has ended when the third begins.
func (o *Operator) Pass(t *testing.T, c client.Client, objects ...client.Object) {
	t.Helper()
	o.Requests.setPassing(true)
	defer o.Requests.setPassing(false)
	for range 3 {
		touches := map[client.ObjectKey]string{}
		for _, obj := range objects {
			require.NoError(t, c.Patch(t.Context(), obj, touch()))
			touches[client.ObjectKeyFromObject(obj)] = obj.GetAnnotations()[touched]
		}
		Eventually(t, "a pass has read each", func(c *assert.CollectT) {
			for key, value := range touches {
				assert.Equal(c, value, o.passes.lastRead(key))
			}
		})
	}
}

// PassAfter calls act and waits until a pass over the object has begun since.
func (o *Operator) PassAfter(t *testing.T, obj client.Object, act func()) {
	t.Helper()
	before := o.Passes(obj)
	act()
	Eventually(t, "a pass", func(c *assert.CollectT) { assert.Greater(c, o.Passes(obj), before) })
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

// passes counts the passes that have begun. Each reads its object once.
type passes struct {
	mu    sync.Mutex
	begun map[client.ObjectKey]int
	read  map[client.ObjectKey]string // the annotation that triggers a pass, as the last one has read it
}

func (p *passes) lastRead(key client.ObjectKey) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.read[key]
}

// count returns a function that creates a client which counts passes over objects of the type of primary.
func (p *passes) count(primary client.Object, next client.NewClientFunc) client.NewClientFunc {
	p.begun, p.read = map[client.ObjectKey]int{}, map[client.ObjectKey]string{}
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
	if reflect.TypeOf(obj) != c.primary {
		return c.Client.Get(ctx, key, obj, opts...)
	}
	c.mu.Lock()
	c.begun[key]++
	c.mu.Unlock()
	err := c.Client.Get(ctx, key, obj, opts...)
	if err == nil {
		c.mu.Lock()
		c.read[key] = obj.GetAnnotations()[touched]
		c.mu.Unlock()
	}
	return err
}
