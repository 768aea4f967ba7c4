package state

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Claims returns the PersistentVolumeClaims of volumeClaimTemplates that stay when their StatefulSet is deleted, as by default in
// Kubernetes. The map's keys are the keys of the claims in the states, and its values are the keys of their StatefulSets.
func Claims(states []State) map[string]string {
	prefixes := map[string]string{} // the keys of StatefulSets by the beginnings of the keys of their claims
	for _, s := range states {
		for key, object := range s {
			name, isSet := strings.CutPrefix(key, "StatefulSet ")
			if !isSet {
				continue
			}
			namespace, name, _ := strings.Cut(name, "/")
			for _, template := range templatesOf(object) {
				prefixes[fmt.Sprintf("PersistentVolumeClaim %s/%s-%s-", namespace, template, name)] = key
			}
		}
	}
	claims := map[string]string{}
	for _, s := range states {
		for key, object := range s {
			for _, prefix := range slices.Collect(maps.Keys(prefixes)) {
				ordinal, found := strings.CutPrefix(key, prefix)
				if _, err := strconv.Atoi(ordinal); found && err == nil && controllerOf(object) == "" {
					claims[key] = prefixes[prefix]
				}
			}
		}
	}
	return claims
}

// templatesOf returns the names of a StatefulSet's volumeClaimTemplates.
func templatesOf(set any) (names []string) {
	content, _ := set.(map[string]any)
	spec, _ := content["spec"].(map[string]any)
	templates, _ := spec["volumeClaimTemplates"].([]any)
	for _, item := range templates {
		template, _ := item.(map[string]any)
		metadata, _ := template["metadata"].(map[string]any)
		if name, _ := metadata["name"].(string); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// isNeverMade reports whether the change is a missing claim, and the state does not have the claim's StatefulSet either. Such a claim stays
// when its StatefulSet is deleted. So if it is missing, the StatefulSet was deleted before the claim was created.
func (r *References) isNeverMade(c *Change, got State) bool {
	set, isClaim := r.Claims[c.Object]
	return isClaim && c.Path == "" && isAbsent(c.Got) && got[set] == nil
}
