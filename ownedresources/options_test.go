package ownedresources

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/owned"
	"github.com/opblocks/opblocks/internal/owned/ownedtest"
	"github.com/opblocks/opblocks/internal/owned/set"
)

// childOption is a call of a method of [Child], as a function value for the tables of tests.
type childOption = ownedtest.Option

// with applies the options to a child.
func with[T, C client.Object](c *Child[T, C], options ...childOption) *Child[T, C] {
	for _, o := range options {
		o(&c.child.Options)
	}
	return c
}

// optionOf returns an option that calls a method of a child.
func optionOf[T, C client.Object](call func(c *Child[T, C]) *Child[T, C]) childOption {
	return func(o *owned.Options) {
		c := &set.Child{Options: *o}
		call(&Child[T, C]{c})
		*o = c.Options
	}
}

type anyShopChild = *Child[*Shop, client.Object]

func withAdopt() childOption         { return optionOf(anyShopChild.Adopt) }
func withAdoptRestored() childOption { return optionOf(anyShopChild.AdoptRestored) }
func withAdoptRetained() childOption { return optionOf(anyShopChild.AdoptRetained) }
func withAnywhere() childOption      { return optionOf(anyShopChild.Anywhere) }
func withRecreate() childOption      { return optionOf(anyShopChild.Recreate) }
func withRunOnce() childOption       { return optionOf(anyShopChild.RunOnce) }

func withIfServed(conditionType ...string) childOption {
	return optionOf(func(c anyShopChild) anyShopChild { return c.IfServed(conditionType...) })
}

func withReadyWhen(conditionType string) childOption {
	return optionOf(func(c anyShopChild) anyShopChild { return c.ReadyWhen(conditionType) })
}

func withRetain[T client.Object](keep func(owner T) bool) childOption {
	return optionOf(func(c *Child[T, client.Object]) *Child[T, client.Object] { return c.Retain(keep) })
}

func withCreateOnly[C client.Object](unset func(C)) childOption {
	return optionOf(func(c *Child[*Shop, C]) *Child[*Shop, C] { return c.CreateOnly(unset) })
}

func withKeepWhileMissing[C client.Object](keep func(live, desired C)) childOption {
	return optionOf(func(c *Child[*Shop, C]) *Child[*Shop, C] { return c.KeepWhileMissing(keep) })
}

func withGenerate(key string, length int) childOption {
	return optionOf(func(c anyShopChild) anyShopChild { return c.Generate(key, length) })
}
