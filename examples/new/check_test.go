package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestDefaultGroup(t *testing.T) {
	for module, want := range map[string]string{
		"example.com/shop":             "shop.example.com",
		"example.com/team/shop/v2":     "shop.example.com",
		"github.com/me/shop":           "shop.example.com",
		"github.com/me/Shop_Operator":  "shop-operator.example.com",
		"shop":                         "shop.example.com",
		"sigs.k8s.io/shop":             "shop.example.com",
		"operators.example.org/a/b/Db": "db.operators.example.org",
	} {
		got := defaultGroup(module)
		assert.Equal(t, want, got, module)
		assert.NoError(t, checkGroup(got), module)
	}
}

func TestPluralOf(t *testing.T) {
	for lower, want := range map[string]string{
		"shop": "shops", "policy": "policies", "key": "keys", "box": "boxes", "bus": "buses", "branch": "branches", "mesh": "meshes", "y": "ys",
	} {
		assert.Equal(t, want, pluralOf(lower))
	}
}
