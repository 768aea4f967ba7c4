package controller

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	storev1alpha1 "github.com/opblocks/opblocks/examples/cache/api/v1alpha1"
	"github.com/opblocks/opblocks/ownedresources"
	"github.com/opblocks/opblocks/reconcile"
)

// settingsFile is the key of the ConfigMap, and the name of the file that the server reads.
const settingsFile = "redis.conf"

// settingsInput reads the settings of a Cache, from the ConfigMap that it refers to and from its spec.
func settingsInput() *ownedresources.Input[*storev1alpha1.Cache, map[string]string] {
	return ownedresources.From(readSettings, ownedresources.Reads(&corev1.ConfigMap{}, settingsReference))
}

func settingsReference(c *storev1alpha1.Cache) []types.NamespacedName {
	if c.Spec.SettingsFrom == nil {
		return nil
	}
	return []types.NamespacedName{{Namespace: c.Namespace, Name: c.Spec.SettingsFrom.Name}}
}

func readSettings(ctx context.Context, r client.Reader, c *storev1alpha1.Cache) (map[string]string, error) {
	settings := map[string]string{}
	for _, name := range settingsReference(c) {
		var from corev1.ConfigMap
		if err := r.Get(ctx, name, &from); err != nil {
			return nil, err
		}
		maps.Copy(settings, from.Data)
	}
	maps.Copy(settings, c.Spec.Settings)
	return settings, nil
}

// settingsConfigMap returns the ConfigMap with the server's configuration file. It is not built while what the Cache refers to
// is missing: a new Cache waits, and a running one keeps the settings that it has.
func settingsConfigMap(c *storev1alpha1.Cache, settings map[string]string) (*corev1.ConfigMap, error) {
	var file strings.Builder
	for _, key := range slices.Sorted(maps.Keys(settings)) {
		if strings.ContainsAny(key+settings[key], "\r\n") {
			return nil, reconcile.Stalled("InvalidSettings", fmt.Errorf("setting %q has more than one line", key))
		}
		fmt.Fprintln(&file, key, settings[key])
	}
	m := ownedresources.NewConfigMap(c, map[string]string{settingsFile: file.String()})
	m.Name = settingsName(c)
	return m, nil
}

// keepSettings keeps the hash of the live pods while the settings are not known, so that no pod is replaced.
func keepSettings(live, desired *appsv1.StatefulSet) {
	if hash, ok := live.Spec.Template.Annotations[annotationSettings]; ok {
		desired.Spec.Template.Annotations[annotationSettings] = hash
	}
}

func settingsName(c *storev1alpha1.Cache) string { return c.Name + "-settings" }
