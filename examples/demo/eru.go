package main

import (
	"fmt"
	"slices"
	"strings"
)

const eruFolder = "examples/eru/config"

// eru tells how a Deployment asks for an Eru, and how that restarts it.
func eru(t *tour) {
	t.title("eru: install the operator")
	t.kubectl("apply", "--server-side", "--kustomize", eruFolder+"/default", "--selector", "app.kubernetes.io/component!=manager")
	t.serve(eruFolder + "/crd/bases/*.yaml")
	t.runOperator("eru", "eru-system", "eru-controller-manager")

	t.title("eru: a Deployment asks for an Eru by its annotation")
	t.kubectl("create", "--filename", eruFolder+"/samples/deployment.yaml")
	t.until("there is one that waits to be enabled", row("nginx nginx 0 0 * * * false Stoping"), "get", "erus")
	t.until("its annotations are the fields as JSON", containsAll(
		`mtsre.meitu.com/deploymentName: '"nginx"'`, `mtsre.meitu.com/enabled: "false"`, `mtsre.meitu.com/schedule: '"0 0 * * *"'`,
		"mtsre.meitu.com/created-by: eru-operator", "create eru cr success,wait to start", "phase: Stoping"),
		"get", "eru", "nginx", "--output=yaml")

	t.title("eru: enabled, with a schedule")
	var before []string
	t.until("two pods run", func(out string) error {
		before = strings.Fields(out)
		if len(before) != 2 {
			return fmt.Errorf("there are %d", len(before))
		}
		return nil
	}, "get", "pods", "--field-selector=status.phase=Running", "--output=name")
	t.patchEru(`{"spec":{"enabled":true,"schedule":"@every 8s"}}`)
	t.until("it runs, and says when it comes next", row("nginx nginx @every 8s true Running"), "get", "erus")
	t.until("the time has come: other pods run", func(out string) error {
		now := strings.Fields(out)
		if len(now) != 2 || slices.ContainsFunc(now, func(pod string) bool { return slices.Contains(before, pod) }) {
			return fmt.Errorf("these are not two others: %q", out)
		}
		return nil
	}, "get", "pods", "--field-selector=status.phase=Running", "--output=name")
	t.until("the rollout was watched to its end", contains("RolloutComplete"),
		"get", "eru", "nginx", "--output=jsonpath={.status.conditions[-1:]}")
	t.until("the Deployment has the time that was due", contains("kubectl.kubernetes.io/restartedAt"),
		"get", "deployment", "nginx", "--output=jsonpath={.spec.template.metadata.annotations}")
	t.until("an event on it tells", contains("as was due at"), "get", "events", "--field-selector=involvedObject.kind=Deployment,reason=Restarted")

	t.title("eru: a schedule that never comes")
	t.patchEru(`{"spec":{"schedule":"0 0 30 2 *"}}`)
	t.until("the condition says why", contains("it never comes"), "get", "eru", "nginx", "--output=jsonpath={.status.conditions[-1:].message}")
	t.patchEru(`{"spec":{"schedule":"30 4 * * SUN","timeZone":"Europe/Berlin"}}`)
	t.until("it heals, and shows the next time in UTC", row("nginx nginx 30 4 * * SUN true Running"), "get", "erus")

	t.title("eru: the annotation is withdrawn")
	t.kubectl("annotate", "deployment", "nginx", "mtsre.meitu.com/eru-")
	t.until("it stops, and keeps the schedule", row("nginx nginx 30 4 * * SUN true Stoping"), "get", "erus")
	t.until("its history tells all of that", contains("AnnotationRemoved"), "get", "eru", "nginx",
		`--output=jsonpath={range .status.conditions[*]}{.lastedTranslationTime}{" "}{.type}{" "}{.ready}{" "}{.reason}{"\n"}{end}`)

	t.title("eru: the Deployment is deleted")
	t.kubectl("delete", "deployment", "nginx")
	t.until("the Eru has gone with it", nothing, "get", "erus,deployments")
}

func (t *tour) patchEru(patch string) {
	t.kubectl("patch", "eru", "nginx", "--type=merge", "--patch", patch)
}

// row is a table row that begins so.
func row(want string) func(string) error {
	return func(out string) error {
		for line := range strings.Lines(out) {
			if strings.HasPrefix(strings.Join(strings.Fields(line), " "), want) {
				return nil
			}
		}
		return fmt.Errorf("no row says %s: %q", want, out)
	}
}

func containsAll(parts ...string) func(string) error {
	return func(out string) error {
		for _, part := range parts {
			if err := contains(part)(out); err != nil {
				return err
			}
		}
		return nil
	}
}
