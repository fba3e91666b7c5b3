package report

import (
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// deviceOf compares a device's arena with its prediction. A device without
// instructions has no arena.
func deviceOf(prediction *devicemap.Prediction, result *executor.Result) Device {
	device := Device{Device: prediction.Device, Predicted: prediction.Predicted}
	for i := range result.Devices {
		found := &result.Devices[i]
		if int(found.Device) != prediction.Device {
			continue
		}
		device.Measured.PeakAllocatedBytes = found.Touched
		for _, region := range found.Regions {
			device.Regions = append(device.Regions, Region{region.Name, region.PlannedBytes, region.TouchedBytes})
		}
		device.Unwritten, device.stray = unwrittenOf(found.Gaps), found.Stray
	}
	if predicted := prediction.Predicted.PeakAllocatedBytes; predicted > 0 {
		ratio := float64(device.Measured.PeakAllocatedBytes) / float64(predicted)
		device.Ratio = &ratio
	}
	return device
}

func unwrittenOf(gaps []executor.Gap) []Unwritten {
	var all []Unwritten
	for _, gap := range gaps {
		all = append(all, Unwritten{gap.Buffer, gap.Bytes, gap.Reason, gap.Missed})
	}
	return all
}

// imbalance returns the largest of the devices' peaks over their mean.
func imbalance(devices []Device) float64 {
	var most, sum int64
	for i := range devices {
		peak := devices[i].Measured.PeakAllocatedBytes
		most, sum = max(most, peak), sum+peak
	}
	if sum == 0 {
		return 1
	}
	return float64(most) * float64(len(devices)) / float64(sum)
}

// StepOf returns a step of a job in a report's form.
func StepOf(measured *executor.StepResult, job *executor.Job) Step {
	step := Step{Step: measured.Number, Seconds: measured.Times.Step.Seconds()}
	if job.Workload.Mode == costmodel.Train {
		step.Loss = &measured.Loss
	}
	for i := range measured.Times.Devices {
		times := &measured.Times.Devices[i]
		step.Devices = append(step.Devices, DeviceTime{
			Device: int(job.Program.Devices[i].ID), Forward: times.Forward.Seconds(), Backward: times.Backward.Seconds(), Weights: times.Weights.Seconds(),
			Decode: times.Decode.Seconds(), Update: times.Update.Seconds(), Wait: times.Wait.Seconds(),
		})
	}
	return step
}
