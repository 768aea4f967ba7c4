package reconcile

import (
	"maps"
	"reflect"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
)

// TransformCompact makes objects smaller before a cache keeps them: it takes off the managed fields, which no block reads
// from a cache, and lets what is equal share its memory: strings among the objects of the cache, and maps of strings
// within an object, such as a Deployment's labels, selector and pod labels. Nothing else changes. Use it as the
// DefaultTransform of cache.Options:
//
//	cache.Options{DefaultTransform: reconcile.TransformCompact()}
//
// As ever, what was read from a cache without a copy (client.UnsafeDisableDeepCopy) is not written to; copies share no maps.
func TransformCompact() toolscache.TransformFunc {
	shared := &sharedStrings{known: map[string]string{}}
	return func(obj any) (any, error) {
		object, ok := obj.(metav1.Object)
		if !ok { // the tombstone of an object that has been through here
			return obj, nil
		}
		if object.GetManagedFields() != nil {
			object.SetManagedFields(nil)
		}
		shared.mu.Lock()
		defer shared.mu.Unlock()
		c := compaction{strings: shared}
		c.value(reflect.ValueOf(obj))
		return obj, nil
	}
}

// sharedStrings gives for equal strings the same one. It forgets all when it holds many: what is frequent is soon known
// again, and names and UIDs are not kept for ever.
type sharedStrings struct {
	mu    sync.Mutex
	known map[string]string
}

const mostSharedStrings = 4096

func (s *sharedStrings) one(v string) string {
	if known, ok := s.known[v]; ok {
		return known
	}
	if len(s.known) >= mostSharedStrings {
		clear(s.known)
	}
	v = strings.Clone(v) // it may be a piece of something larger
	s.known[v] = v
	return v
}

// compaction is that of one object.
type compaction struct {
	strings *sharedStrings
	maps    []map[string]string
}

var stringMap = reflect.TypeFor[map[string]string]()

func (c *compaction) value(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			c.value(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() { //nolint:modernize // Value.Fields describes each field too, which takes ten times as long
			if f := v.Field(i); f.CanSet() {
				c.value(f)
			}
		}
	case reflect.Slice:
		switch v.Type().Elem().Kind() {
		case reflect.Pointer, reflect.Struct, reflect.String, reflect.Slice, reflect.Map:
			for i := range v.Len() {
				c.value(v.Index(i))
			}
		}
	case reflect.String:
		if s := v.String(); s != "" && v.CanSet() {
			v.SetString(c.strings.one(s))
		}
	case reflect.Map:
		if v.Type() == stringMap && v.Len() > 0 && v.CanSet() {
			v.Set(reflect.ValueOf(c.sharedMap(v.Interface().(map[string]string))))
		}
	}
}

func (c *compaction) sharedMap(m map[string]string) map[string]string {
	for _, known := range c.maps {
		if maps.Equal(m, known) {
			return known
		}
	}
	for key, value := range m {
		m[c.strings.one(key)] = c.strings.one(value)
	}
	c.maps = append(c.maps, m)
	return m
}
