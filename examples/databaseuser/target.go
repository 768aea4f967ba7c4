package main

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// checkTarget refuses what no label can say, and so no DatabaseUser.
func checkTarget(target string) error {
	if target == "" {
		return errors.New("give --target")
	}
	if wrong := validation.IsValidLabelValue(target); len(wrong) > 0 {
		return fmt.Errorf("--target: %s", strings.Join(wrong, "; "))
	}
	return nil
}

// leaseOf names the lease of those who serve a target. A label's value may hold what a name may not, such as my_shop.
func leaseOf(target string) string {
	name := strings.ToLower(target)
	if len(validation.IsDNS1123Subdomain(name)) > 0 {
		name = fmt.Sprintf("%x", name)
	}
	return name + ".databaseuser.mygroup.handsomeguy.cn"
}
