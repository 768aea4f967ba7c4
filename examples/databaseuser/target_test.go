package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/util/validation"
)

func TestLeaseName(t *testing.T) {
	for target, name := range map[string]string{
		"shop":    "shop.databaseuser.mygroup.handsomeguy.cn",
		"SHOP":    "shop.databaseuser.mygroup.handsomeguy.cn",           // served by the same operator
		"my_shop": "6d795f73686f70.databaseuser.mygroup.handsomeguy.cn", // in a name _ is not possible
		"a..b":    "612e2e62.databaseuser.mygroup.handsomeguy.cn",
	} {
		assert.NoError(t, checkTarget(target))
		assert.Equal(t, name, leaseName(target))
		assert.Empty(t, validation.IsDNS1123Subdomain(name))
	}
}

func TestCheckTarget(t *testing.T) {
	for _, target := range []string{"", " ", "my shop", "shop/", "-"} {
		assert.Error(t, checkTarget(target), "%q", target)
	}
}
