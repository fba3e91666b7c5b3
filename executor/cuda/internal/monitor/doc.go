// Package witness looks at GPUs beside the machines that run on them: what this process
// holds of the driver's, what each GPU has free, and whether that can be had.
package monitor
