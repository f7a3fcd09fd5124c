-- wrk script: submits a 3 KB text-to-image workflow. The request is built once: the load driver shares the machine.
local padding = string.rep("beautiful scenery, purple galaxy bottle, highly detailed, ", 32)
local prepared

init = function()
  local body = '{"workflow":{"3":{"class_type":"KSampler","inputs":{"cfg":8,"denoise":1,"latent_image":["5",0],' ..
    '"model":["4",0],"negative":["7",0],"positive":["6",0],"sampler_name":"euler","scheduler":"normal","seed":1' ..
    ',"steps":20}},"4":{"class_type":"CheckpointLoaderSimple","inputs":{"ckpt_name":"flux1-dev-fp8.safetensors"}},' ..
    '"5":{"class_type":"EmptyLatentImage","inputs":{"batch_size":1,"height":512,"width":512}},' ..
    '"6":{"class_type":"CLIPTextEncode","inputs":{"clip":["4",1],"text":"' .. padding .. '"}},' ..
    '"7":{"class_type":"CLIPTextEncode","inputs":{"clip":["4",1],"text":"text, watermark"}},' ..
    '"8":{"class_type":"VAEDecode","inputs":{"samples":["3",0],"vae":["4",2]}},' ..
    '"9":{"class_type":"SaveImage","inputs":{"filename_prefix":"ComfyUI","images":["8",0]}}}}'
  prepared = wrk.format("POST", "/api/v2/jobs", { ["Content-Type"] = "application/json" }, body)
end

request = function()
  return prepared
end

done = function(summary, latency)
  local errors = summary.errors.status + summary.errors.connect + summary.errors.read + summary.errors.write + summary.errors.timeout
  io.write(string.format("RESULT requests=%d seconds=%.3f p50_ms=%.3f p99_ms=%.3f errors=%d\n",
    summary.requests, summary.duration / 1e6, latency:percentile(50) / 1000, latency:percentile(99) / 1000, errors))
end
