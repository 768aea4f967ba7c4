package main

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// checkTarget returns an error for a target that cannot be the value of a label: no DatabaseUser could have it.
func checkTarget(target string) error {
	if target == "" {
		return errors.New("give --target")
	}
	if wrong := validation.IsValidLabelValue(target); len(wrong) > 0 {
		return fmt.Errorf("--target: %s", strings.Join(wrong, "; "))
	}
	return nil
}

// leaseName returns the name of the lease of the operators for a target. The value of a label may contain what a name may
// not, such as the _ in my_shop: it is then encoded in hexadecimal.
func leaseName(target string) string {
	name := strings.ToLower(target)
	if len(validation.IsDNS1123Subdomain(name)) > 0 {
		name = fmt.Sprintf("%x", name)
	}
	return name + ".databaseuser.mygroup.handsomeguy.cn"
}
