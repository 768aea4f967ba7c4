package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Whatever a label can be, the lease can be named for it.
func TestLease(t *testing.T) {
	for _, target := range []string{"shop", "Shop", "shop_1", "a.b", "A__b.-c", "0", strings.Repeat("z", 63)} {
		assert.Empty(t, validation.IsValidLabelValue(target))
		assert.Empty(t, validation.IsDNS1123Subdomain(lease(target)), lease(target))
	}
	assert.Equal(t, lease("shop"), lease("SHOP"), "they serve the same")
	assert.NotEqual(t, lease("shop_1"), lease("shop-1"))
}
