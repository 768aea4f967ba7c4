package ownedresources

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/owned"
	"github.com/opblocks/opblocks/internal/owned/set"
)

// The methods of [Child] as options, for the tables of tests.

func withRetain[T client.Object](keep func(owner T) bool) ChildOption {
	return optionOf(func(c *Child[T, client.Object]) { c.Retain(keep) })
}

func withCreateOnly[C client.Object](unset func(C)) ChildOption {
	return optionOf(func(c *Child[*Shop, C]) { c.CreateOnly(unset) })
}

func withKeepWhileMissing[C client.Object](keep func(live, desired C)) ChildOption {
	return optionOf(func(c *Child[*Shop, C]) { c.KeepWhileMissing(keep) })
}

func withGenerate(key string, length int) ChildOption {
	return optionOf(func(c *Child[*Shop, client.Object]) { c.Generate(key, length) })
}

// optionOf returns an option that calls a method of a child.
func optionOf[T, C client.Object](call func(c *Child[T, C])) ChildOption {
	return func(o *owned.Options) {
		c := &set.Child{Options: *o}
		call(&Child[T, C]{c})
		*o = c.Options
	}
}
