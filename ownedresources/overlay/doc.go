// Package overlay lets the users of an operator change the pods that it creates. Its type [PodTemplate] is a field of a
// custom resource. It holds a strategic merge patch of a pod template, which the user writes as part of the object:
//
//	spec:
//	  podTemplate:
//	    spec:
//	      priorityClassName: high
//	      containers:
//	      - name: web
//	        resources: {limits: {memory: 1Gi}}
//
// The operator merges it into the template that it has built, with [PodTemplate.Apply]. [PodTemplate.Validate] checks a
// patch in a webhook.
//
// The alternative, a field of type corev1.PodTemplateSpec, makes a CRD of more than 600 kB, and cannot say what is to be
// removed. A field of this type takes two lines of the CRD.
//
// Facts to know:
//   - The patch is merged by the library of kubectl patch --type strategic: containers, volumes and variables by name, ports
//     by containerPort and protocol, mounts by mountPath. Tolerations, args and command are replaced as a whole. Null
//     removes a field, and $patch: delete removes an item. All directives are supported:
//     https://github.com/kubernetes/community/blob/master/contributors/devel/sig-api-machinery/strategic-merge-patch.md
//   - The merge differs from kubectl patch where kubectl patch drops or keeps something by mistake, or makes a pod that no
//     API server accepts. The items of the base keep their places. Ports and spread constraints have keys of two fields. If
//     fields exclude each other, the patch's field replaces the base's field. An object with $patch: replace is kept where the
//     base has none. Nulls and directives in new items are carried out. It is an error if the API server would ignore or
//     guess a part of the patch, or would apply it in no fixed order: an unknown field, a directive in a list that is replaced
//     as a whole, a key that occurs twice.
//   - The order of the result depends only on the arguments, so an unchanged patch replaces no pods.
//   - kubectl apply drops nulls before the API server sees them; with --server-side, and with kubectl create, they arrive.
//     Directives always arrive: $patch: delete for an object or an item, an item $patch: replace for a list.
//   - A user who may write the field can run any pod that the operator may create: as any service account of the
//     namespace, with any of its Secrets, privileged, on any node. Pod Security Admission still applies to the pods.
//     [Protect] fields such as spec.serviceAccountName where that is too much. It protects their aliases too, such as
//     spec.serviceAccount.
//
// API packages can import this package: it depends on k8s.io/api and k8s.io/apimachinery only.
package overlay
