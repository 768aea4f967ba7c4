// Package compaction makes objects smaller before a cache keeps them.
package compaction

import (
	"maps"
	"reflect"
	"strings"
	"sync"
)

// Strings returns the same string for equal strings. When it holds too many strings, it forgets all of them, so it does
// not keep names and UIDs for ever. It soon holds the frequent strings again. The zero value holds no strings. Strings
// is safe for concurrent use.
type Strings struct {
	mu    sync.Mutex
	known map[string]string
	empty map[reflect.Type]reflect.Value // by type: a pointer to an empty struct of this type
}

const maxStrings = 4096

// maxLength is the length of the longest strings that are shared. Longer strings, such as the values of a ConfigMap, are seldom equal. A
// shared string stays in memory after its object is gone.
const maxLength = 1024

// Compact makes an object smaller. Nobody else may use the object at the same time. Equal strings of all objects share
// their memory, and so do pointers to empty structs, and equal maps of strings within the object.
func (s *Strings) Compact(obj any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := compaction{strings: s}
	c.value(reflect.ValueOf(obj))
}

func (s *Strings) share(v string) string {
	if len(v) > maxLength {
		return v
	}
	if known, ok := s.known[v]; ok {
		return known
	}
	if len(s.known) >= maxStrings {
		clear(s.known)
	}
	if s.known == nil {
		s.known = map[string]string{}
	}
	v = strings.Clone(v) // the string may be a part of a larger one, which would stay in memory
	s.known[v] = v
	return v
}

// emptyStruct returns a pointer to an empty struct. All objects share the pointer of this type.
func (s *Strings) emptyStruct(pointer reflect.Value) reflect.Value {
	if known, ok := s.empty[pointer.Type()]; ok {
		return known
	}
	if s.empty == nil {
		s.empty = map[reflect.Type]reflect.Value{}
	}
	made := reflect.New(pointer.Type().Elem())
	s.empty[pointer.Type()] = made
	return made
}

// compaction has the state while one object is made smaller.
type compaction struct {
	strings *Strings
	maps    []map[string]string
}

var stringMap = reflect.TypeFor[map[string]string]()

func (c *compaction) value(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		switch elem := v.Elem(); {
		case v.IsNil():
		case elem.Kind() == reflect.Struct && v.CanSet() && elem.IsZero():
			v.Set(c.strings.emptyStruct(v))
		default:
			c.value(elem)
		}
	case reflect.Interface:
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
			v.SetString(c.strings.share(s))
		}
	case reflect.Map:
		if v.Type() == stringMap && v.Len() > 0 && v.CanSet() {
			v.Set(reflect.ValueOf(c.sharedMap(v.Interface().(map[string]string))))
		}
	}
}

// sharedMap returns an equal map of the same object, if one was seen before. Otherwise it returns m, with shared
// strings.
func (c *compaction) sharedMap(m map[string]string) map[string]string {
	for _, known := range c.maps {
		if maps.Equal(m, known) {
			return known
		}
	}
	for key, value := range m {
		m[c.strings.share(key)] = c.strings.share(value)
	}
	c.maps = append(c.maps, m)
	return m
}
